package exchange

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/pool"
)

// saidOn returns the branches of a context by name: the texts of each.
func saidOn(t *testing.T, s *chatctx.Store, ref string) string {
	t.Helper()
	ctx := context.Background()
	c, err := s.Context(ctx, ref)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	all, err := c.Branches(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		fmt.Fprintf(&out, "%s:", b.Name)
		snap, err := c.Snapshot(ctx, b.Name)
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range snap.Entries(ctx, 1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, " %s", e.Text())
		}
		out.WriteString("\n")
	}
	return out.String()
}

// state returns a state of a ChatGPT conversation: its time, title, and nodes NAME=TEXT, each below the previous one.
func state(at int, title string, nodes ...string) string {
	var list []string
	before := ""
	for i, n := range nodes {
		id, text, _ := strings.Cut(n, "=")
		list = append(list, fmt.Sprintf(`%q:{"id":%q,"parent":%q,"message":{"author":{"role":%q},"content":{"content_type":"text","parts":[%q]}}}`,
			id, id, before, []string{"user", "assistant"}[i%2], text))
		before = id
	}
	return fmt.Sprintf(`[{"conversation_id":"c","title":%q,"update_time":%d,"current_node":%q,"mapping":{%s}}]`, title, at, before, strings.Join(list, ","))
}

// TestWhatChangedSince imports states of a conversation one after another.
func TestWhatChangedSince(t *testing.T) {
	const first, second = 1_700_000_000, 1_800_000_000
	for name, c := range map[string]struct {
		states   []string
		between  func(b *chatctx.Batch) // after the first
		title    string
		branches string
		warnings int
	}{
		"another text and title": {[]string{state(first, "Old", "q=q", "a=one"), state(second, "New", "q=q", "a=two")}, nil, "New", "main: q one\nmain.2: q two\n", 2},
		"more beside a text": {[]string{state(first, "T", "q=q", "a=a"), strings.Replace(state(second, "T", "q=q", "a=a"), `"content_type":"text",`, `"content_type":"text","cites":["a page"],`, 1)},
			nil, "T", "main: q a\n", 1},
		"less beside a text": {[]string{strings.Replace(state(first, "T", "q=q", "a=a"), `"content_type":"text",`, `"content_type":"text","cites":["a page"],`, 1), state(second, "T", "q=q", "a=a")},
			nil, "T", "main: q a\n", 0},
		"a title without times": {[]string{state(0, "Old", "q=q"), state(0, "New", "q=q")}, nil, "New", "main: q\n", 1},
		"an older title":        {[]string{state(second, "New", "q=q"), state(first, "Old", "q=q")}, nil, "New", "main: q\n", 1},
		"renamed here": {[]string{state(first, "Old", "q=q", "a=a"), state(second, "New", "q=q", "a=a")}, func(b *chatctx.Batch) { b.SetTitle("Mine") },
			"Mine", "main: q a\n", 1},
		"later messages are carried": {[]string{state(first, "T", "q=q", "a=one", "q2=more", "a2=end"), state(second, "T", "q=q", "a=two", "q2=more", "a2=end", "q3=last")}, nil,
			"T", "main: q one more end\nmain.2: q two more end last\n", 1},
		"where somebody went on": {[]string{state(first, "T", "q=q", "a=one"), state(second, "T", "q=q", "a=two")}, func(b *chatctx.Batch) { b.Append(pool.NewText(pool.User, "here")) },
			"T", "main: q one here\nmain.2: q two\n", 1},
		"written on":         {[]string{state(first, "T", "q=q", "a=one"), state(second, "T", "q=q", "a=one and two")}, nil, "T", "main: q one and two\n", 1},
		"written on, before": {[]string{state(second, "T", "q=q", "a=one and two"), state(first, "T", "q=q", "a=one")}, nil, "T", "main: q one and two\n", 0},
		"there and back": {[]string{state(first, "T", "q=q", "a=one"), state(second, "T", "q=q", "a=two"), state(first, "T", "q=q", "a=one"),
			state(second, "T", "q=q", "a=two")}, nil, "T", "main: q one\nmain.2: q two\n", 1},
		"a third": {[]string{state(first, "T", "q=q", "a=one"), state(second, "T", "q=q", "a=two"), state(second+1, "T", "q=q", "a=three"), state(second+2, "T", "q=q", "a=two!")}, nil,
			"T", "main: q one\nmain.2: q two!\nmain.3: q three\n", 3},
		"a prompt written on": {[]string{state(first, "T", "q=fix it", "a=one"), state(second, "T", "q=fix it now", "a=one")}, nil, "T", "main: fix it one\nmain.2: fix it now one\n", 1},
		"a prompt cut":        {[]string{state(second, "T", "q=fix it now", "a=one"), state(first, "T", "q=fix it", "a=one")}, nil, "T", "main: fix it now one\nmain.2: fix it one\n", 1},
		"written on, but answered here": {[]string{state(first, "T", "q=q", "a=one"), state(second, "T", "q=q", "a=one and two")}, func(b *chatctx.Batch) { b.Append(pool.NewText(pool.User, "here")) },
			"T", "main: q one here\nmain.2: q one and two\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			s := memoryStore(t)
			file := filepath.Join(t.TempDir(), "conversations.json")
			warnings := 0
			var before string
			for i, text := range c.states {
				write(t, file, text)
				if i == len(c.states)-1 {
					before = saidOn(t, s, only(t, s).ID.String())
				}
				rep := importInto(t, s, file)
				warnings += len(rep.Warnings)
				again, err := Import(ctx, s, []string{file}, Options{DryRun: true})
				if err != nil || again.Messages != 0 {
					t.Errorf("a dry run after state %d: %+v, %v", i, again, err)
				}
				if i == 0 && c.between != nil {
					cc, err := s.Context(ctx, only(t, s).ID.String())
					if err != nil {
						t.Fatal(err)
					}
					commit(t, cc, "main", c.between)
				}
			}
			id := only(t, s).ID.String()
			if got := saidOn(t, s, id); got != c.branches || only(t, s).Title != c.title || warnings != c.warnings {
				t.Errorf("%q\n%swarnings: %d, want %q\n%s", only(t, s).Title, got, warnings, c.title, c.branches)
			}
			if before == c.branches || c.between != nil {
				return
			}
			if _, err := s.Undo(ctx, id, "", ""); err != nil {
				t.Fatal(err)
			}
			if got := saidOn(t, s, id); got != before {
				t.Errorf("undone:\n%swant\n%s", got, before)
			}
			storetest.Check(t, s)
		})
	}
}

func only(t *testing.T, s *chatctx.Store) *record.ContextInfo {
	t.Helper()
	all := contextsOf(t, s)
	if len(all) != 1 {
		t.Fatalf("%d contexts", len(all))
	}
	for _, info := range all {
		return info
	}
	return nil
}

// TestAnUndoneRenameFollowsTheFileAgain: an undo also removes the mark of a title that was set in the store.
func TestAnUndoneRenameFollowsTheFileAgain(t *testing.T) {
	ctx := context.Background()
	s := memoryStore(t)
	file := filepath.Join(t.TempDir(), "conversations.json")
	importInto(t, s, write(t, file, state(1_700_000_000, "Old", "q=q")))
	c, err := s.Context(ctx, "Old")
	if err != nil {
		t.Fatal(err)
	}
	commit(t, c, "main", func(b *chatctx.Batch) { b.SetTitle("Mine") })
	if _, err := s.Undo(ctx, c.ID.String(), "", ""); err != nil {
		t.Fatal(err)
	}
	importInto(t, s, write(t, file, state(1_800_000_000, "New", "q=q")))
	if got := only(t, s).Title; got != "New" {
		t.Error(got)
	}
}

// TestARecordStandsAgainWrittenOn: within one file the later state of a message replaces the earlier.
func TestARecordStandsAgainWrittenOn(t *testing.T) {
	lines := ccText("user", "u1", "", "what is here") + ccText("assistant", "a1", "u1", "I look")
	all, rep := readAll(t, Options{}, writeTemp(t, "session.jsonl", lines, ccText("assistant", "a1", "u1", "I look around"), ccText("assistant", "a1", "u1", "I look")))
	if got := visible(all[0]); got != "user what is here | assistant I look around" || rep.Duplicated != 2 {
		t.Errorf("%s, %+v", got, rep)
	}
}

// TestARecordStandsAgainBeside: what only a later record of a message says, in its parts or calls, is kept, with that message or beside it.
func TestARecordStandsAgainBeside(t *testing.T) {
	cc := func(content string) string {
		return `{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s","timestamp":"2026-01-01T10:00:01Z","message":{"id":"r","role":"assistant","content":[` + content + "]}}\n"
	}
	cai := func(url string) string {
		return `{"uuid":"m2","sender":"assistant","created_at":"2025-01-01T00:00:01Z","content":[{"type":"thinking","thinking":"hm","summaries":[{"summary":"` + url +
			`"}]},{"type":"text","text":"yo","citations":[{"url":"` + url + `"}]}]}`
	}
	vercel := func(output string) string {
		return `{"id":"m2","role":"assistant","parts":[{"type":"tool-x","toolCallId":"t1","state":"output-available","input":{"a":1},"output":` + output + `}]}`
	}
	for name, text := range map[string]string{
		"claude-code part": ccText("user", "u1", "", "Hi") + cc(`{"type":"text","text":"Hello"}`) + cc(`{"type":"text","text":"Hello","citations":["only here"]}`),
		"claude-code call": ccText("user", "u1", "", "Hi") + cc(`{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}`) +
			cc(`{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"only here"}}`),
		"claude-ai": `[{"uuid":"c","name":"n","chat_messages":[{"uuid":"m1","sender":"human","text":"Hi","created_at":"2025-01-01T00:00:00Z"},` + cai("one") + "," + cai("only here") + `]}]`,
		"vercel-ai": `[{"id":"m1","role":"user","parts":[{"type":"text","text":"hi"}]},` + vercel(`{"v":"one"}`) + "," + vercel(`{"v":"one","w":"only here"}`) + `]`,
		"openai-chat": `{"chosen_messages":[{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":"a"}],` +
			`"rejected_messages":[{"role":"user","content":[{"type":"text","text":"q","note":"only here"}]},{"role":"assistant","content":"b"}]}`,
	} {
		all, rep := readAll(t, Options{}, writeTemp(t, "session.jsonl", text))
		raw, err := json.Marshal(all)
		if err != nil || !strings.Contains(string(raw), "only here") {
			t.Errorf("%s: %s, %+v, %v", name, raw, rep, err)
		}
	}
}

// TestLabelsFollowTheFile: a context has its format's name, and labels for the file's archive, pins and projects, until somebody changes them in the store.
func TestLabelsFollowTheFile(t *testing.T) {
	ctx := context.Background()
	s := memoryStore(t)
	file := filepath.Join(t.TempDir(), "conversations.json")
	marked := func(at int, marks string) string {
		return strings.Replace(state(at, "T", "q=q"), `"title"`, marks+`"title"`, 1)
	}
	labels := func(want string) {
		t.Helper()
		if got := strings.Join(only(t, s).Labels, " "); got != want {
			t.Errorf("labels %q, want %q", got, want)
		}
	}
	importInto(t, s, write(t, file, marked(1_700_000_000, `"is_archived":true,"is_starred":true,`)))
	labels("archived chatgpt pinned")
	importInto(t, s, write(t, file, marked(1_700_000_001, `"is_archived":false,"is_starred":true,`)))
	labels("chatgpt pinned")
	c, err := s.Context(ctx, only(t, s).ID.String())
	if err != nil {
		t.Fatal(err)
	}
	commit(t, c, "main", func(b *chatctx.Batch) { b.Unlabel("pinned"); b.Label("mine") })
	importInto(t, s, write(t, file, marked(1_700_000_002, `"is_archived":true,"is_starred":true,`)))
	labels("archived chatgpt mine")
	if _, err := s.Undo(ctx, c.ID.String(), "", ""); err != nil {
		t.Fatal(err)
	}
	labels("chatgpt mine")
	storetest.Check(t, s)
}

// TestPiLabelsAreTags: the newest label of an entry becomes a tag of its message.
func TestPiLabelsAreTags(t *testing.T) {
	s := memoryStore(t)
	importInto(t, s, writeTemp(t, "s.jsonl", `{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/srv/kite"}
{"type":"message","id":"aa","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"q"}}
{"type":"label","id":"bb","parentId":"aa","timestamp":"2026-01-01T00:00:02.000Z","targetId":"aa","label":"old"}
{"type":"label","id":"cc","parentId":"bb","timestamp":"2026-01-01T00:00:03.000Z","targetId":"aa","label":"the plan"}
`))
	info := only(t, s)
	c, err := s.Context(context.Background(), info.ID.String())
	if err != nil {
		t.Fatal(err)
	}
	tags, err := c.Tags(context.Background())
	if err != nil || len(tags) != 1 || tags["the-plan"] == (chatctx.ID{}) || strings.Join(info.Labels, " ") != "kite pi-mono" {
		t.Errorf("tags %v, labels %v, %v", tags, info.Labels, err)
	}
}
