package exchange

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// outcome is the expected result of a case of the shared folder.
type outcome struct {
	contexts, messages, structural, skipped, skippedContexts, repaired int
	warnings                                                           int
	// paths are the branches, the active one first, as the ids of their nodes.
	paths  []string
	verify func(t *testing.T, all []*record.Incoming)
}

// pathOf returns a branch as the ids of its nodes.
func pathOf(in *record.Incoming, leaf int) string {
	var ids []string
	for n := leaf - 1; n >= 0; n = in.Nodes[n].Parent - 1 {
		ids = append(ids, in.Nodes[n].ID)
	}
	slices.Reverse(ids)
	return strings.Join(ids, " ")
}

func nodeOf(t *testing.T, in *record.Incoming, id string) *chatctx.Message {
	t.Helper()
	for _, n := range in.Nodes {
		if n.ID == id {
			return n.Message
		}
	}
	t.Fatalf("no node %q", id)
	return nil
}

// chatgptCases are the cases of ChatGPT's export by number.
var chatgptCases = map[string]outcome{
	"01": {contexts: 1, messages: 9, structural: 1, paths: []string{"sys u1 a2 u3 a4", "sys u1 a1", "sys u1 a3", "sys u2 a5"}},
	"02": {contexts: 1, messages: 3, structural: 3, paths: []string{"u b", "u a"}},
	"03": {contexts: 3, messages: 7, structural: 3, warnings: 3, paths: []string{"u b", "u a", "u a", "u b", "u"}},
	"04": {contexts: 1, messages: 3, structural: 1, paths: []string{"u a2", "u a1"}},
	"05": {contexts: 1, messages: 3, structural: 1, paths: []string{"n1 n3", "n1 n2"}},
	"09": {contexts: 1, messages: 5, structural: 1, paths: []string{"s0 ctx u mem a"}, verify: verifyHidden},
	"10": {contexts: 1, messages: 7, structural: 1, paths: []string{"u c o q b e a"}, verify: verifyTools},
	"11": {contexts: 1, messages: 4, structural: 1, paths: []string{"u t k a"}, verify: verifyThoughts},
	"12": {contexts: 3, messages: 5, structural: 1, paths: []string{"u a", "u", "u a"}, verify: verifyTimes},
	"13": {contexts: 2, messages: 2, skipped: 3, skippedContexts: 5, warnings: 8, paths: []string{"u", "u"}},
	"17": {contexts: 1, messages: 3, repaired: 2, warnings: 2, paths: []string{"u a b"}, verify: verifySurrogates},
	"18": {contexts: 1, messages: 2, paths: []string{"u a"}, verify: verifyCitations},
	"78": {contexts: 1, messages: 2, warnings: 1, paths: []string{"u a"}, verify: func(t *testing.T, all []*record.Incoming) {
		if all[0].Title != "second" {
			t.Errorf("the title is %q", all[0].Title)
		}
	}},
	"79": {contexts: 1, messages: 2, paths: []string{"u a"}, verify: verifyCharacters},
}

func verifyHidden(t *testing.T, all []*record.Incoming) {
	for _, id := range []string{"s0", "ctx", "mem"} {
		if !nodeOf(t, all[0], id).Hidden {
			t.Errorf("%s is not hidden", id)
		}
	}
	if text := nodeOf(t, all[0], "ctx").Text(); strings.Contains(text, "{") || !strings.Contains(text, "I like tea") {
		t.Errorf("ctx reads %q", text)
	}
}

func verifyTools(t *testing.T, all []*record.Incoming) {
	c, o := nodeOf(t, all[0], "c"), nodeOf(t, all[0], "o")
	if len(c.Calls) != 1 || c.Calls[0].Tool != "python" || !strings.Contains(string(c.Calls[0].Arguments), "print(1+1)") {
		t.Errorf("c calls %+v", c.Calls)
	}
	if o.Result == nil || o.Result.RequestID != c.Calls[0].ID || o.Result.Text != "2\n" {
		t.Errorf("o answers %+v", o.Result)
	}
	for id, want := range map[string]string{"q": "quoted", "b": "L0: hit", "e": "Error: no file"} {
		if m := nodeOf(t, all[0], id); m.Result == nil || m.Result.Text != want {
			t.Errorf("%s is %+v, want the text %q", id, m.Result, want)
		}
	}
	if !nodeOf(t, all[0], "e").Result.IsError {
		t.Error("e is no error")
	}
}

func verifyThoughts(t *testing.T, all []*record.Incoming) {
	th, k := nodeOf(t, all[0], "t"), nodeOf(t, all[0], "k")
	if len(th.Content) != 2 || th.Content[0].Type != pool.ThinkingPart || th.Content[0].Text != "Think first" || th.Content[1].Text != "" || !th.Hidden {
		t.Errorf("t is %+v", th)
	}
	if k.Kind != "recap" || !k.Unsent || !k.Hidden || !strings.Contains(string(k.Meta.ProviderData["chatgpt"]), "29") {
		t.Errorf("k is %+v", k)
	}
	if text := nodeOf(t, all[0], "a").Text(); text != "Answer" {
		t.Errorf("a reads %q", text)
	}
}

func verifyTimes(t *testing.T, all []*record.Incoming) {
	for _, in := range all[:2] {
		if in.Title != "q" || !in.Derived || nodeOf(t, in, "u").Created != 0 {
			t.Errorf("%s: title %q derived %v, u at %d", in.Conversation, in.Title, in.Derived, nodeOf(t, in, "u").Created)
		}
	}
	if got := at(nodeOf(t, all[2], "a").Created); got != "2024-05-01T10:00:01Z" {
		t.Errorf("a was made at %s", got)
	}
}

func verifySurrogates(t *testing.T, all []*record.Incoming) {
	for id, want := range map[string]string{
		"u": "cut emoji �… and low � end", "a": "two halves 😂 then stray � byte", "b": "ok 😂",
	} {
		if got := nodeOf(t, all[0], id).Text(); got != want {
			t.Errorf("%s reads %q, want %q", id, got, want)
		}
	}
	if raw := nodeOf(t, all[0], "a").Source.Raw; !strings.Contains(string(raw), "\xed\xa0\xbd\xed\xb8\x82") {
		t.Errorf("the raw record of a is %q", raw)
	}
}

func verifyCitations(t *testing.T, all []*record.Incoming) {
	a := nodeOf(t, all[0], "a")
	if !strings.Contains(a.Text(), "\ue200cite\ue202turn0search0") || !strings.Contains(a.Text(), "【16†source】") {
		t.Errorf("a reads %q", a.Text())
	}
	if d := string(a.Meta.ProviderData["chatgpt"]); !strings.Contains(d, "start_idx") || !strings.Contains(d, "start_ix") {
		t.Errorf("the references are %s", d)
	}
}

func verifyCharacters(t *testing.T, all []*record.Incoming) {
	text := nodeOf(t, all[0], "u").Text() + nodeOf(t, all[0], "a").Text()
	for _, s := range []string{"\x00", "\u2028", "\u202e", "e\u0301", "\r\n", "&amp;", "\ufeff", "👩\u200d💻"} {
		if !strings.Contains(text, s) {
			t.Errorf("%q is lost", s)
		}
	}
}

func TestSharedChatGPTCases(t *testing.T) {
	for number, want := range chatgptCases {
		t.Run(number, func(t *testing.T) {
			dirs, err := filepath.Glob(filepath.Join(testkit.Shared(t, "cases"), number+"-*", "input.json"))
			if err != nil || len(dirs) != 1 {
				t.Fatal(dirs, err)
			}
			all, rep := readAll(t, Options{}, dirs[0])
			checkOutcome(t, want, all, rep)
		})
	}
}

func checkOutcome(t *testing.T, want outcome, all []*record.Incoming, rep *Report) {
	t.Helper()
	got := outcome{contexts: len(all), messages: rep.Messages, structural: rep.Structural, skipped: rep.Skipped,
		skippedContexts: rep.SkippedContexts, repaired: rep.Repaired, warnings: len(rep.Warnings)}
	for _, in := range all {
		for _, b := range in.Branches {
			got.paths = append(got.paths, pathOf(in, b.Leaf))
		}
	}
	if !slices.Equal(got.paths, want.paths) {
		t.Errorf("the branches are %q, want %q", got.paths, want.paths)
	}
	verify := want.verify
	got.paths, want.paths, want.verify = nil, nil, nil
	if got.contexts != want.contexts || got.messages != want.messages || got.structural != want.structural || got.skipped != want.skipped ||
		got.skippedContexts != want.skippedContexts || got.repaired != want.repaired || got.warnings != want.warnings {
		t.Errorf("it came to %+v, want %+v\n%v", got, want, rep.Warnings)
	}
	if verify != nil && !t.Failed() {
		verify(t, all)
	}
}

// TestSharedWrongFiles reads the files of case 80, some of which nobody can read.
func TestSharedWrongFiles(t *testing.T) {
	dir := testkit.Shared(t, "cases", "80-utf16-and-empty-and-wrong-files")
	for name, want := range map[string]struct {
		messages int
		outcome  Outcome
		word     string
	}{
		"utf16.json": {1, Complete, ""}, "object.json": {1, Complete, ""}, "single.json": {1, Complete, ""}, "empty-array.json": {0, Complete, ""},
		"empty.json": {0, Nothing, "empty"}, "page.html": {0, Nothing, "HTML"}, "error.json": {0, Nothing, "Unauthorized"},
	} {
		_, rep := readAll(t, Options{}, filepath.Join(dir, name))
		if rep.Messages != want.messages || rep.Outcome() != want.outcome {
			t.Errorf("%s: %d messages, outcome %d, want %d and %d", name, rep.Messages, rep.Outcome(), want.messages, want.outcome)
		}
		if want.word != "" && (len(rep.Warnings) != 1 || !strings.Contains(rep.Warnings[0].Text, want.word)) {
			t.Errorf("%s: %v does not say %q", name, rep.Warnings, want.word)
		}
	}
}

// TestSharedTimes reads the table of case 81.
func TestSharedTimes(t *testing.T) {
	v := parseFile(t, filepath.Join(testkit.Shared(t, "cases", "81-timestamps-units-table"), "input.json"))
	unknown := map[string]bool{"us_locale": true, "null": true, "zero": true, "negative": true, "text": true, "far": true}
	for name, x := range v.get("values").members() {
		got := x.time()
		if unknown[name] != (got == 0) || got != 0 && got.Time().Format("2006-01-02T15:04:05") != "2025-04-13T20:52:37" {
			t.Errorf("%s: %s is %s", name, x.raw(), at(got))
		}
	}
}
