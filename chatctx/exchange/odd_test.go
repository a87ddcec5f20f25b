package exchange

import (
	"bytes"
	"context"
	"encoding/json"
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
		if rep.Contexts != 2 || rep.Messages != 2 || rep.Repaired != 1 || len(rep.Warnings) != 1 || rep.Warnings[0].Line != 7 || !strings.Contains(rep.Warnings[0].Text, "no valid id") {
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
	want := []string{"5: the branch of the task is not in the file; its id is kept: " + nowhere, "6: the message at which the branch begins is not in the file; its id is kept: " + nowhere,
		"7: the original of a copied message is not in the file; its id is kept: " + nowhere + ", and 1 more"}
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
		"arguments of Codex": `{"type":"session_meta","payload":{"id":"s"}}` + "\n" +
			`{"type":"response_item","payload":{"type":"function_call","name":"f","arguments":"{\"a\":1,\"a\":2}","call_id":"c1"}}` + "\n",
		"a call of ShareGPT": `[{"id":"d","conversations":[{"from":"human","value":"hi"},{"from":"function_call","value":"{\"name\":\"f\",\"arguments\":{\"a\":\"1\"},\"arguments\":{\"a\":\"2\"}}"}]}]`,
		"calls of llama.cpp": `{"type":"session","harness":"llama.app","id":"s","name":"n","currNode":"a"}` + "\n" +
			`{"type":"message","message":{"convId":"s","id":"u","parent":null,"children":["a"],"role":"user","content":"hi","type":"text"}}` + "\n" +
			`{"type":"message","message":{"convId":"s","id":"a","parent":"u","children":[],"role":"assistant","content":"","type":"text","toolCalls":"[{\"id\":\"c1\",\"function\":{\"name\":\"f\",\"name\":\"g\"}}]"}}` + "\n",
		"aichat": "model: m\nmessages:\n- role: user\n  content: hello\n  content: again\n",
	} {
		all, rep := readAll(t, Options{}, write(t, filepath.Join(t.TempDir(), "odd.yaml"), text))
		if len(all) != 1 || len(rep.Warnings) != 1 || !strings.Contains(rep.Warnings[0].Text, "occurs more than once; the last one counts") {
			t.Errorf("%s: %d, %v", name, len(all), rep.Warnings)
		}
	}
}

// TestRepeatedKeysOfCherryStudio: its assistants are JSON in a string in JSON in a string; the keys of both are named.
func TestRepeatedKeysOfCherryStudio(t *testing.T) {
	text := `{"time":1,"version":5,"localStorage":{"persist:cherry-studio":"{\"settings\":\"1\",\"settings\":\"2\",\"assistants\":\"{\\\"assistants\\\":[{\\\"id\\\":\\\"a\\\",\\\"prompt\\\":\\\"one\\\",\\\"prompt\\\":\\\"two\\\",\\\"topics\\\":[{\\\"id\\\":\\\"tp\\\"}]}]}\"}"},
		"indexedDB":{"topics":[{"id":"tp","messages":[{"id":"m","role":"user","topicId":"tp","blocks":["b"]}]}],"message_blocks":[{"id":"b","messageId":"m","type":"main_text","content":"hi"}]}}`
	all, rep := readAll(t, Options{}, write(t, filepath.Join(t.TempDir(), "data.json"), text))
	said := fmt.Sprint(rep.Warnings)
	for _, want := range []string{`the key "settings" occurs more than once`, `the key "assistants[0].prompt" occurs more than once`} {
		if len(all) != 1 || !strings.Contains(said, want) {
			t.Errorf("%d conversations, without %s: %s", len(all), want, said)
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

// TestABadMemberAmongMany: what is not valid in a message is found in linear time, and the members that this program does not know stay, each under a key of
// its own.
func TestABadMemberAmongMany(t *testing.T) {
	var many strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&many, `"later %d":"THE %d.","twice":"TWICE %d.",`, i, i, i)
	}
	text := nativeTalk(`{"message":{"id":"01a223bc-d760-7595-90cd-b8973cb5c502",`+many.String()+`"role":7,"content":[{"type":"text","text":"in the middle","inside":"THE INSIDE"}]}}`,
		"01a223bc-d760-7595-90cd-b8973cb5c503", "01a22021-63f8-756b-84f8-284ac451d6a0")
	s, rep := imported(t, []byte(text))
	if rep.Messages != 2 || rep.Repaired != 1 || !strings.Contains(fmt.Sprint(rep.Warnings), "role of the message cannot be read") {
		t.Errorf("%+v", rep)
	}
	out := lawOfExport(t, exported(t, s, ExportOptions{All: true}))
	for _, text := range []string{"THE 0.", "THE 2999.", "TWICE 2999.", "THE INSIDE"} {
		if !out.has(text) {
			t.Errorf("%s is lost", text)
		}
	}
	valid, _ := imported(t, []byte(strings.Replace(text, `"role":7`, `"role":"user"`, 1)))
	out = lawOfExport(t, exported(t, valid, ExportOptions{All: true}))
	for i := range 3000 {
		if text := fmt.Sprintf("TWICE %d.", i); !out.has(text) {
			t.Fatalf("%s is lost", text)
		}
	}
}

// TestALongTitle: a title that a context cannot have is kept whole in its app data.
func TestALongTitle(t *testing.T) {
	for _, title := range []string{strings.Repeat("very long ", 300) + "to THE END", `two\n\tlines to THE END`} {
		text := `[{"title":"` + title + `","conversation_id":"c","create_time":1756000000,"mapping":{"u":{"id":"u","parent":null,"children":[],"message":{"id":"u","author":{"role":"user"},` +
			`"content":{"content_type":"text","parts":["q"]}}}},"current_node":"u"}]`
		s, rep := imported(t, []byte(text))
		info := onlyContext(t, s)
		var about struct{ Title string }
		if err := json.Unmarshal(info.AppData["chatgpt"], &about); err != nil || about.Title == "" || len(info.Title) > 1000 || !strings.HasPrefix(info.Title, title[:3]) {
			t.Errorf("%v, title %q, %+v", err, info.Title, rep)
		}
		for _, m := range lostIn([]byte(text), lawOfExport(t, exported(t, s, ExportOptions{All: true})), "chatgpt", rep) {
			t.Error(m)
		}
	}
}

// TestManyStatesOfAMessage: each state of a message that a later line replaces is kept, however many there are.
func TestManyStatesOfAMessage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"sessionId":"s1","projectHash":"x","startTime":"2026-01-01T00:00:00Z"}` + "\n" + `{"id":"u1","timestamp":"2026-01-01T00:00:00Z","type":"user","content":"hi"}` + "\n")
	for i := range 400 {
		fmt.Fprintf(&b, `{"id":"m1","timestamp":"2026-01-01T00:00:01Z","type":"gemini","content":"state %d.","note":"note %d."}`+"\n", i, i)
	}
	s, rep := imported(t, []byte(b.String()))
	out := lawOfExport(t, exported(t, s, ExportOptions{All: true}))
	for i := range 400 {
		for _, text := range []string{fmt.Sprintf("state %d.", i), fmt.Sprintf("note %d.", i)} {
			if !out.has(text) {
				t.Fatalf("%q is lost: %+v", text, rep)
			}
		}
	}
}

// TestLinesWithATimeAreNotCodex: lines of messages of which one is a system message are no rollout, also where gptme's marks do not fit.
func TestLinesWithATimeAreNotCodex(t *testing.T) {
	for _, time := range []string{`"2026-01-02T03:04:05"`, `{"odd":1}`, `1767323045`} {
		s, rep := imported(t, []byte(`{"role":"system","content":"You help.","timestamp":`+time+`}`+"\n"+`{"role":"user","content":"Hi","timestamp":"2026-01-02T03:04:06"}`+"\n"))
		if out := string(exported(t, s, ExportOptions{All: true})); rep.Messages != 2 || strings.Contains(out, `"hidden":true`) || strings.Contains(out, `"codex"`) {
			t.Errorf("%s: %+v\n%s", time, rep, out)
		}
	}
}

// TestTitlesOfExports: of several exports of a context the title of the newest counts, whatever comes first, also where somebody gave it in the other store;
// a title that somebody gave here stays.
func TestTitlesOfExports(t *testing.T) {
	const id = "01a22021-63f6-7ad6-9c13-ff9dd3538650"
	export := func(month int, renamed bool) string {
		return write(t, filepath.Join(t.TempDir(), "x.jsonl"), fmt.Sprintf(`{"chatctx":1,"contexts":1}
{"context":{"id":"%s","title":"title %d","renamed":%v,"active":"main","created_at":"2025-01-01T00:00:00Z","updated_at":"2025-%02d-01T00:00:00Z"}}
{"branch":{"id":"01a22021-63f8-756b-84f8-284ac451d6a0","name":"main"}}
{"message":{"id":"01a223bc-d760-7595-90cd-b8973cb5c503","role":"user","content":"hi"}}
{"end":{"context":"%s","messages":1,"branches":1}}
`, id, month, renamed, month, id))
	}
	for _, renamed := range []bool{false, true} {
		for _, order := range [][]int{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}} {
			s := memoryStore(t)
			for _, month := range order {
				importInto(t, s, export(month, renamed))
			}
			if info := onlyContext(t, s); info.Title != "title 3" {
				t.Errorf("%v, renamed %v: %q", order, renamed, info.Title)
			}
			if out := exported(t, s, ExportOptions{All: true}); bytes.Contains(out, []byte(`"renamed":true`)) != renamed {
				t.Errorf("renamed %v: %s", renamed, out)
			}
		}
		s := memoryStore(t)
		importInto(t, s, export(1, renamed))
		c, err := s.Context(context.Background(), id)
		if err == nil {
			b := c.Begin("")
			b.SetTitle("given here")
			_, err = b.Commit(context.Background())
		}
		if err != nil {
			t.Fatal(err)
		}
		rep := importInto(t, s, export(2, true))
		if info := onlyContext(t, s); info.Title != "given here" || !strings.Contains(fmt.Sprint(rep.Warnings), "not taken: title") {
			t.Errorf("%q, %v", info.Title, rep.Warnings)
		}
	}
}

// TestTextsBesideMessages: of an item of a data set every text is kept, also one that is beside the messages which were read.
func TestTextsBesideMessages(t *testing.T) {
	for _, text := range []string{
		`{"prompt":"THE PROMPT","chosen":[{"role":"user","content":"another"},{"role":"assistant","content":"a"}],"rejected":[{"role":"user","content":"THE Q"},{"role":"assistant","content":"THE A"}]}`,
		`{"prompt":"p","chosen":"THE CHOSEN","rejected":"THE REJECTED","completion":"THE COMPLETION","output":"THE OUTPUT"}`,
		`{"messages":[{"role":"user","content":"m"}],"prompt":"THE PROMPT","completion":"THE COMPLETION","chosen":"THE CHOSEN","rejected":"THE REJECTED","output":"THE OUTPUT"}`,
		`{"instruction":"THE TASK","input":"THE INPUT","output":"THE OUTPUT","chosen":"THE CHOSEN","rejected":"THE REJECTED","system":"THE SYSTEM","prompt":"THE PROMPT","completion":"THE COMPLETION"}`,
	} {
		s, rep := imported(t, []byte(text+"\n"))
		if rep.Outcome() != Complete || rep.Imported[0].Format != openAIName {
			t.Errorf("%s: %+v", text, rep)
		}
		for _, m := range lostIn([]byte(text), lawOfExport(t, exported(t, s, ExportOptions{All: true})), openAIName, rep) {
			t.Errorf("%s: %s", text, m)
		}
	}
}

// TestAGrownTwin: of two states of a conversation in one file the report names what only the shorter state of a message has beside its words.
func TestAGrownTwin(t *testing.T) {
	state := func(text, note string) string {
		return `{"title":"t","conversation_id":"c","mapping":{"u":{"id":"u","parent":null,"children":[],"message":{"id":"u","author":{"role":"assistant"},"content":{"content_type":"text","parts":["` + text +
			`"]},"metadata":{"note":"` + note + `"}}}},"current_node":"u"}`
	}
	_, rep := imported(t, []byte("["+state("hello", "old note")+","+state("hello world", "new note")+"]"))
	if len(rep.Warnings) != 2 || !strings.Contains(warningsOf(rep), "the earlier metadata.provider_data.chatgpt.metadata.note of the message u") {
		t.Errorf("%+v", rep)
	}
}
