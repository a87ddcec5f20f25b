package exchange

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// nativeTalk is an export of a context with a message line, a branch that begins at a message, and a task of a parent that comes before it.
func nativeTalk(message, at, task string) string {
	const parent, id = "01a22021-63f6-7ad6-9c13-ff9dd3538650", "01a22021-63f6-7ad6-9c13-ff9dd353865f"
	return `{"chatctx":1,"contexts":2}
{"context":{"id":"` + parent + `","title":"parent","active":"main"}}
{"branch":{"id":"01a22021-63f8-756b-84f8-284ac451d6a0","name":"main"}}
{"end":{"context":"` + parent + `","messages":0,"branches":1}}
{"context":{"id":"` + id + `","title":"p","parent":"` + parent + `","active":"main","task":{"branch":"` + task + `","branch_name":"main","state":"running","depth":1}}}
{"branch":{"id":"01a22021-63f8-756b-84f8-284ac451d6a4","name":"main","at":"` + at + `"}}
` + message + `
{"message":{"id":"01a223bc-d760-7595-90cd-b8973cb5c503","role":"user","content":[{"type":"text","text":"after it"}],"copied_from":"` + at + `"}}
{"branch":{"id":"01a22021-63f8-756b-84f8-284ac451d6a5","name":"other","like":{"branch":"main","messages":2}}}
{"end":{"context":"` + id + `","messages":2,"branches":2}}
`
}

// TestABadMessageID: a message whose id is none stays in its place with one of its own, the same each time.
func TestABadMessageID(t *testing.T) {
	const there = "01a223bc-d760-7595-90cd-b8973cb5c503"
	for _, id := range []string{`"id":"no id",`, `"id":{"odd":"THE ID"},`, `"id":null,`, ``, `"id":"00000000-0000-0000-0000-000000000000",`} {
		text := nativeTalk(`{"message":{`+id+`"role":"user","content":[{"type":"text","text":"in the middle"}]}}`, there, "01a22021-63f8-756b-84f8-284ac451d6a0")
		s, rep := imported(t, []byte(text))
		if rep.Contexts != 2 || rep.Messages != 2 || rep.Repaired != 1 || len(rep.Warnings) != 1 || rep.Warnings[0].Line != 7 || !strings.Contains(rep.Warnings[0].Text, "no id that is one") {
			t.Errorf("%s: %+v", id, rep)
		}
		out := exported(t, s, ExportOptions{All: true})
		if !bytes.Contains(out, []byte("in the middle")) || strings.Contains(id, "THE ID") && !bytes.Contains(out, []byte("THE ID")) {
			t.Errorf("%s: %s", id, out)
		}
		again := importInto(t, s, write(t, filepath.Join(t.TempDir(), "again.jsonl"), text))
		if again.Contexts != 0 || again.Messages != 0 || again.Duplicated != 2 {
			t.Errorf("%s, again: %+v", id, again)
		}
	}
}

// TestNamesOfWhatIsNotThere: the report names what a branch, a copy and a task name that the file does not have. The ids stay.
func TestNamesOfWhatIsNotThere(t *testing.T) {
	const nowhere = "01a223bc-d760-7595-90cd-b8973cb5c5ff"
	text := nativeTalk(`{"message":{"id":"01a223bc-d760-7595-90cd-b8973cb5c502","role":"user","content":[{"type":"text","text":"first"}],"copied_from":"`+nowhere+`"}}`, nowhere, nowhere)
	s, rep := imported(t, []byte(text))
	want := []string{"5: the branch of the task is kept, and is not in the file: " + nowhere, "6: where the branch begins is kept, and is not in the file: " + nowhere,
		"7: what a message is a copy of is kept, and is not in the file: " + nowhere + ", and 1 more"}
	var got []string
	for _, w := range rep.Warnings {
		got = append(got, fmt.Sprintf("%d: %s", w.Line, w.Text))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || rep.Outcome() != Complete {
		t.Errorf("%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if out := exported(t, s, ExportOptions{All: true}); bytes.Count(out, []byte(nowhere)) != 4 {
		t.Errorf("%s", out)
	}
}

// TestRepeatedKeysInside: keys that stand twice in JSON that is in a string, and in YAML, are named like those of the file itself.
func TestRepeatedKeysInside(t *testing.T) {
	for name, text := range map[string]string{
		"arguments":         `{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1,\"a\":2}"}}]}]}`,
		"arguments, nested": `{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"b\":[{\"a\":1,\"a\":2}]}"}}]}]}`,
		"aichat":            "model: m\nmessages:\n- role: user\n  content: hello\n  content: again\n",
	} {
		all, rep := readAll(t, Options{}, write(t, filepath.Join(t.TempDir(), "odd.yaml"), text))
		if len(all) != 1 || len(rep.Warnings) != 1 || !strings.Contains(rep.Warnings[0].Text, "stands more than once, the last one counts") {
			t.Errorf("%s: %d, %v", name, len(all), rep.Warnings)
		}
	}
}

// TestNestedTooDeeply: the report says where a file is nested too deeply, whatever its shape; the other conversations are read.
func TestNestedTooDeeply(t *testing.T) {
	deep := strings.Repeat("[", 1200) + strings.Repeat("]", 1200)
	one := `{"id":"c","title":"t","current_node":"a","mapping":{"a":{"id":"a","message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["hello"]},"metadata":` + deep + `}}}}`
	for name, c := range map[string]struct{ text, where string }{
		"a list":        {"[" + one + "]", `in "mapping.a.message.metadata[0]`},
		"an object":     {one, `in "mapping.a.message.metadata[0]`},
		"several lines": {strings.ReplaceAll(one, `"mapping"`, "\n"+`"mapping"`), `in "mapping.a.message.metadata[0]`},
		"JSON Lines":    {`{"type":"session","id":"s","cwd":"/x","odd":` + deep + "}\n" + `{"type":"message","message":{"role":"user","content":"hello"}}` + "\n", `in "odd[0]`},
	} {
		_, rep := readAll(t, Options{}, write(t, filepath.Join(t.TempDir(), "deep.json"), c.text))
		if len(rep.Warnings) == 0 || !strings.Contains(rep.Warnings[0].Text, "nested deeper than 1000") || !strings.Contains(rep.Warnings[0].Text, c.where) {
			t.Errorf("%s: %v", name, rep.Warnings)
		}
	}
}
