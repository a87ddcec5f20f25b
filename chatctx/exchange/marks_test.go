package exchange

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chatctx/chatctx/pool"
)

// TestMarksOfMessages: what a tool says of a message or call beside its words is what it means here.
func TestMarksOfMessages(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a denied call": {`[{"id":"u","role":"user","parts":[{"type":"text","text":"go"}]},{"id":"a","role":"assistant","parts":[
			{"type":"tool-rm","toolCallId":"c1","state":"output-denied","input":{},"approval":{"id":"p","approved":false,"reason":"no way"}},
			{"type":"tool-rm","toolCallId":"c2","state":"output-error","input":{},"errorText":"broken"},
			{"type":"tool-rm","toolCallId":"c3","state":"approval-requested","input":{}}]}]`, "user; assistant [c1 denied none denied in the file]; tool denied; assistant [c2 approved failed ]; tool ; assistant [c3 denied none no result]; "},
		"a denied call of model messages": {`[{"role":"user","content":[{"type":"text","text":"go"}]},{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c1","toolName":"rm","input":{}}]},
			{"role":"tool","content":[{"type":"tool-result","toolCallId":"c1","toolName":"rm","output":{"type":"execution-denied","reason":"no way"}}]}]`, "user; assistant [c1 denied none denied in the file]; tool denied; "},
		"skipped messages": {`{"id":"k","systemPurposeId":"Generic","messages":[{"id":"1","role":"user","created":1755000000000,"userFlags":["starred","aix.skip"],"fragments":[{"ft":"content","fId":"f1","part":{"pt":"text","text":"no"}}]},
			{"id":"2","role":"user","created":1755000000001,"userFlags":["starred"],"fragments":[{"ft":"content","fId":"f2","part":{"pt":"text","text":"yes"}}]}]}`, "user unsent; user; "},
		"summaries": {`{"__exported_at":"2026","chat-sessions-list":[{"id":"s","name":"n"}],"session:s":{"id":"s","name":"n","messages":[{"id":"1","role":"assistant","isSummary":true,"contentParts":[{"type":"text","text":"sum"}],"usage":{"inputTokens":7,"outputTokens":9}},
			{"id":"2","role":"assistant","generating":true,"contentParts":[{"type":"text","text":"par"}]}]}}`, "assistant summary 7+9; assistant unfinished; "},
	} {
		t.Run(name, func(t *testing.T) {
			all, rep := readAll(t, Options{}, write(t, filepath.Join(t.TempDir(), "file.json"), c.text))
			if len(all) != 1 || rep.Outcome() != Complete {
				t.Fatalf("%+v", rep)
			}
			got := ""
			for _, n := range all[0].Nodes {
				m := n.Message
				got += string(m.Role)
				if m.Kind != "" || m.Role == pool.ToolRole {
					got += " " + m.Kind
				}
				if m.Unsent {
					got += " unsent"
				}
				if m.Unfinished {
					got += " unfinished"
				}
				if m.Meta.InputTokens != nil {
					got += fmt.Sprintf(" %d+%d", *m.Meta.InputTokens, *m.Meta.OutputTokens)
				}
				for _, call := range m.Calls {
					got += fmt.Sprintf(" [%s %s %s %s]", call.ID, call.Status, call.Execution, call.Reason)
				}
				got += "; "
			}
			if got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			s := memoryStore(t)
			importInto(t, s, write(t, filepath.Join(t.TempDir(), "file.json"), c.text))
		})
	}
}
