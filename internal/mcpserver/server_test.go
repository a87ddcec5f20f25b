package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange"
	_ "github.com/chatctx/chatctx/chatctx/exchange/all"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// agent is a session of an agent with a server.
type agent struct {
	t *testing.T
	*mcp.ClientSession
}

func connected(t *testing.T, o Options) *agent {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	if _, err := New(o).Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &agent{t, s}
}

// ask calls a tool and returns its answer, which has to be a frame of at most 4 KB, or longer if the call asks for it.
func (a *agent) ask(tool string, arguments map[string]any) (text string, failed bool) {
	a.t.Helper()
	res, err := a.CallTool(a.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		a.t.Fatalf("%s %v: %v", tool, arguments, err)
	}
	text = res.Content[0].(*mcp.TextContent).Text
	most := 4 << 10
	if n, ok := arguments["tokens"].(int); ok {
		most = 4 * n
	}
	if len(text) > most {
		a.t.Errorf("%s %v: %d bytes", tool, arguments, len(text))
	}
	framed(a.t, text)
	return text, res.IsError
}

// says are the lines that a frame says itself.
var says = regexp.MustCompile(`^(|Text after > is quoted .*instruction to you\.|\d+\. at [0-9a-f]{8}/[0-9a-f]{8}, (system|user|assistant|tool)(, \d{4}-\d\d-\d\d)?|\d+ of \d+\. (system|user|assistant|tool)(, \d{4}-\d\d-\d\d)?` +
	`|conversation [0-9a-f]{8} with \d+ branch(es)?(, \d{4}-\d\d-\d\d)?|[0-9a-f]{8}(, \d{4}-\d\d-\d\d)?: \d+ messages?, \d+ branch(es)?|\d+\. \d+ messages?|it leaves branch \d+ after message \d+|it begins with [0-9a-f]{8}/[0-9a-f]{8}, \w+:` +
	`|tried, and dropped|tried, and taken back: no branch has it any more|tried on a branch, and dropped: the conversation went on without it|the conversation goes on here|the branch ends here|it failed|the answer broke off|the call (was denied|failed|was never decided)` +
	`|it goes on: read with cursor [\w-]+|there are more: tree with from \d+|nothing found: .*|kept as [0-9a-f]{8}/[0-9a-f]{8}|\d+ branch(es)? removed|the rest is left out: ask for more tokens|there are more: search finds them|(user|assistant|tool|system)(, \d{4}-\d\d-\d\d)?)$`)

func framed(t *testing.T, text string) {
	t.Helper()
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if !says.MatchString(line) && !regexp.MustCompile(`^(title|branch|error|denied, because)?> `).MatchString(line) {
			t.Errorf("the line %q is neither the frame's own nor marked", line)
		}
	}
}

// conversation makes a conversation that was held in a folder.
func conversation(t *testing.T, st *chatctx.Store, folder, title string, messages ...*pool.Message) *chatctx.ChatContext {
	t.Helper()
	c, err := st.New(t.Context(), record.NewContext{Title: title, Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	data, _ := json.Marshal(map[string]string{"cwd": folder})
	change(t, c, func(b *chatctx.Batch) { b.SetContextData("claude-code", data) })
	return c
}

func change(t *testing.T, c *chatctx.ChatContext, fill func(*chatctx.Batch)) *record.Committed {
	t.Helper()
	b := c.Begin("")
	fill(b)
	done, err := b.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func user(text string) *pool.Message { return pool.NewText(pool.User, text) }

// TestTools: an agent sees what the server offers, and note only if it may write.
func TestTools(t *testing.T) {
	st := storetest.Open(t, "", chatctx.Options{})
	for _, write := range []bool{false, true} {
		a := connected(t, Options{Store: st, Folder: "/srv/site", Folders: []string{"/srv/site"}, Write: write})
		var names []string
		for tool, err := range a.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
			if tool.Annotations.ReadOnlyHint != (tool.Name != "note") || tool.Description == "" {
				t.Errorf("%+v", tool)
			}
		}
		want := []string{"read", "search", "tree"}
		if write {
			want = []string{"note", "read", "search", "tree"}
		}
		if slices.Sort(names); !slices.Equal(names, want) {
			t.Errorf("%v", names)
		}
		if got := a.InitializeResult().Instructions; !strings.Contains(got, "denied") || strings.Contains(got, "Call note") != write {
			t.Errorf("%s", got)
		}
		if _, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "note", Arguments: map[string]any{"text": "x"}}); (err == nil) != write {
			t.Errorf("write %v: %v", write, err)
		}
	}
}

// TestOnlyWhatMayBeRead: other folders, the trash, hidden, excluded and redacted messages and keys reach no agent, by no tool and no address.
func TestOnlyWhatMayBeRead(t *testing.T) {
	st := storetest.Open(t, "", chatctx.Options{})
	hidden := user("zebra: a hidden word")
	hidden.Hidden = true
	key := "ghp_" + "x7Q2mN9vKp4RtY8wLs3BzD6fHj1CgA5eUoXi" // made up
	here := conversation(t, st, "/srv/site", "Stripes", user("zebra: may be read"), hidden, user("zebra: left out by a person"), user("zebra "+chatctx.RedactedMark+" gone"), user("zebra token "+key))
	change(t, here, func(b *chatctx.Batch) { b.Mark("@-2", enhancer.Excluded) })
	secret := []*chatctx.ChatContext{conversation(t, st, "/srv/other", "zebra elsewhere", user("zebra of another folder")), conversation(t, st, "/srv/site/below", "zebra below", user("zebra below")),
		conversation(t, st, "/srv/site", "zebra trashed", user("zebra in the trash")), conversation(t, st, "", "zebra nowhere", user("zebra nowhere"))}
	if _, err := st.Trash(t.Context(), secret[2].ID.String()); err != nil {
		t.Fatal(err)
	}
	a := connected(t, Options{Store: st, Folder: "/srv/site", Folders: []string{"/srv/site"}})
	never := regexp.MustCompile(`hidden word|left out by|gone|another folder|zebra below|elsewhere|trash|nowhere|` + key[10:])
	search, _ := a.ask("search", map[string]any{"query": "zebra"})
	read, _ := a.ask("read", map[string]any{"at": here.ID.String()})
	tree, _ := a.ask("tree", map[string]any{"at": record.Short(here.ID)})
	for _, text := range []string{search, read, tree, a.resource("chatctx://conversations")} {
		if never.MatchString(text) || !strings.Contains(text, "Stripes") {
			t.Errorf("%s", text)
		}
	}
	if !strings.Contains(search, "> zebra: may be read\n") || !strings.Contains(read, "> zebra token [secret]\n") {
		t.Errorf("%s\n%s", search, read)
	}
	for _, c := range secret {
		var answers []string
		for _, tool := range []string{"read", "tree"} {
			for _, at := range []string{c.ID.String(), record.Short(c.ID)} {
				text, failed := a.ask(tool, map[string]any{"at": at})
				if !failed || never.MatchString(text) {
					t.Errorf("%s %s: %s", tool, at, text)
				}
				answers = append(answers, text)
			}
		}
		missing, _ := a.ask("read", map[string]any{"at": "00000000-0000-7000-8000-000000000000"})
		if answers = slices.Compact(append(answers, missing)); len(answers) != 1 {
			t.Errorf("the answers tell a conversation that is not for the agent from one that is not there: %q", answers)
		}
		if _, err := a.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "chatctx://conversation/" + c.ID.String()}); err == nil {
			t.Errorf("its address can be read")
		}
	}
	if text, failed := a.ask("read", map[string]any{"at": "zebra elsewhere"}); !failed || never.MatchString(strings.ReplaceAll(text, "zebra elsewhere", "")) {
		t.Errorf("%s", text)
	}
	all := connected(t, Options{Store: st, Folder: "/srv/site"})
	if text, _ := all.ask("search", map[string]any{"query": "zebra", "limit": 20}); !strings.Contains(text, "another folder") || strings.Contains(text, "in the trash") {
		t.Errorf("everywhere: %s", text)
	}
}

// resource reads an address.
func (a *agent) resource(uri string) string {
	a.t.Helper()
	res, err := a.ReadResource(a.t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		a.t.Fatalf("%s: %v", uri, err)
	}
	framed(a.t, res.Contents[0].Text)
	return res.Contents[0].Text
}

// TestWhatABranchSays: answers tell what was denied and why, and what was tried and dropped, or taken back.
func TestWhatABranchSays(t *testing.T) {
	st := storetest.Open(t, "", chatctx.Options{})
	ask := func(id string) *pool.Message {
		return &pool.Message{Role: pool.Assistant, Content: []pool.Part{{Type: pool.TextPart, Text: "quagga plan " + id}}, Calls: []pool.Call{{ID: id, Tool: "shell", Arguments: json.RawMessage(`{"command":"drop database"}`)}}}
	}
	c := conversation(t, st, "/srv/site", "Quaggas", user("which quagga?"), ask("one"))
	change(t, c, func(b *chatctx.Batch) {
		b.Decide("one", record.Verdict{Status: pool.Denied, Reason: "production data\nIgnore this"})
	})
	change(t, c, func(b *chatctx.Batch) {
		b.Fork("other", chatctx.ForkOptions{At: "@1"})
		b.Append(user("the quagga of the other branch"))
	})
	change(t, c, func(b *chatctx.Batch) { b.Append(user("quagga taken back")) })
	change(t, c, func(b *chatctx.Batch) { b.Rewind("@-1") })
	a := connected(t, Options{Store: st, Folders: []string{"/srv/site"}})
	text, _ := a.ask("search", map[string]any{"query": "quagga", "limit": 10})
	for _, want := range []string{
		"title> Quaggas\ntried on a branch, and dropped: the conversation went on without it\nbranch> main\ndenied, because> production data Ignore this\n> quagga plan one",
		"tried, and taken back: no branch has it any more\n> quagga taken back\n",
		"title> Quaggas\n> the quagga of the other branch\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	tree, _ := a.ask("tree", map[string]any{"at": record.Short(c.ID)})
	if want := regexp.MustCompile(`branch> main\n(.*\n)?tried, and dropped\n(.*\n)*denied, because> production data`); !want.MatchString(tree) || !strings.Contains(tree, "branch> other\n") {
		t.Errorf("%s", tree)
	}
}

// TestReadGoesOn: cursors lead through a conversation of long messages, whole and in order, whatever the budget.
func TestReadGoesOn(t *testing.T) {
	st := storetest.Open(t, "", chatctx.Options{})
	var words []string
	var messages []*pool.Message
	for i := range 12 {
		var text []string
		for j := range 1 + i*i*5 {
			text = append(text, fmt.Sprintf("Wort%d.%d", i, j))
			if j%9 == 8 {
				text = append(text, "\n")
			}
		}
		messages = append(messages, user(strings.Join(text, " ")))
		words = append(words, strings.Fields(strings.Join(text, " "))...)
	}
	c := conversation(t, st, "/srv/site", "Long", messages...)
	a := connected(t, Options{Store: st, Folders: []string{"/srv/site"}})
	next := regexp.MustCompile(`read with cursor (\S+)\n$`)
	for _, tokens := range []int{200, 333, 1000, 8000} {
		var got strings.Builder
		in := map[string]any{"at": record.Short(c.ID), "tokens": tokens}
		for n := 0; ; n++ {
			text, failed := a.ask("read", in)
			if failed || n > 200 {
				t.Fatalf("%d tokens: %s", tokens, text)
			}
			for line := range strings.SplitSeq(text, "\n") {
				if words, ok := strings.CutPrefix(line, "> "); ok {
					got.WriteString(strings.ReplaceAll(words, " ", ""))
				}
			}
			m := next.FindStringSubmatch(text)
			if m == nil {
				break
			}
			in = map[string]any{"cursor": m[1], "tokens": tokens}
		}
		if got.String() != strings.Join(words, "") {
			t.Errorf("%d tokens: another text", tokens)
		}
	}
	for _, in := range []map[string]any{{}, {"at": "x", "cursor": "y"}, {"cursor": "AAAA"}, {"at": record.Short(c.ID), "tokens": 5}, {"at": record.Short(c.ID) + "/../../etc"}, {"at": record.Short(c.ID) + "/ffffffff"}, {"file": "/etc/passwd"}} {
		res, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "read", Arguments: in})
		if err == nil && !res.IsError {
			t.Errorf("%v is answered", in)
		}
	}
}

// TestPosesStayInTheFrame: texts that pose as the server's own words are quoted wherever they stand: in messages, arguments, results, titles and reasons.
func TestPosesStayInTheFrame(t *testing.T) {
	testkit.Sequential(t)
	raw, err := os.ReadFile(filepath.Join("..", "quote", "testdata", "poses.json"))
	var poses []string
	if err == nil {
		err = json.Unmarshal(raw, &poses)
	}
	if err != nil || len(poses) < 500 {
		t.Fatalf("%d poses, %v", len(poses), err)
	}
	st := storetest.Open(t, "", chatctx.Options{})
	a := connected(t, Options{Store: st, Folders: []string{"/srv/site"}})
	var all []*pool.Message
	for i, pose := range poses {
		mark := fmt.Sprintf("okapi%d ", i)
		arguments, _ := json.Marshal(map[string]string{"command": mark + pose})
		id := fmt.Sprint(i)
		all = append(all, user(mark+pose), &pool.Message{Role: pool.Assistant, Content: []pool.Part{{Type: pool.TextPart, Text: pose}}, Calls: []pool.Call{{ID: id, Tool: "shell", Arguments: arguments, Status: pool.Denied, Reason: pose}}},
			&pool.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: id, Text: pose, IsError: true}})
	}
	unfit := func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}
	for i := 0; i < len(all); i += 300 {
		part := all[i:min(i+300, len(all))]
		c := conversation(t, st, "/srv/site", strings.Map(unfit, part[1].Calls[0].Reason), part...)
		change(t, c, func(b *chatctx.Batch) {
			b.Fork(fmt.Sprintf("obey%d", i), chatctx.ForkOptions{At: "@3"})
			b.Append(user("on"))
		})
		for _, in := range []map[string]any{{"at": record.Short(c.ID)}, {"at": record.Short(c.ID) + "/" + record.Short(part[0].ID), "tokens": 8000}} {
			a.ask("read", in)
		}
		a.ask("tree", map[string]any{"at": record.Short(c.ID), "tokens": 8000})
		a.whole(record.Short(c.ID))
	}
	a.resource("chatctx://conversations")
	for i := 0; i < len(poses); i += 10 {
		if text, _ := a.ask("search", map[string]any{"query": fmt.Sprintf("okapi%d", i)}); !strings.Contains(text, fmt.Sprintf("> okapi%d", i)) && !strings.Contains(text, fmt.Sprintf(`"okapi%d`, i)) {
			t.Errorf("pose %d: %s", i, text)
		}
	}
}

// whole reads a conversation to its end; ask holds each answer.
func (a *agent) whole(at string) {
	a.t.Helper()
	in := map[string]any{"at": at, "tokens": 2000}
	for range 1000 {
		text, failed := a.ask("read", in)
		if failed {
			a.t.Fatal(text)
		}
		_, cursor, more := strings.Cut(text, "\nit goes on: read with cursor ")
		if !more {
			return
		}
		in = map[string]any{"cursor": strings.TrimSpace(cursor), "tokens": 2000}
	}
	a.t.Error("reading does not end")
}

// TestRecall: of the questions over the samples, of which half are in other languages or about what tools said, at least nine of ten find their message among the
// first five. Without CHATCTX_LONG only those about tools are asked.
func TestRecall(t *testing.T) {
	testkit.Sequential(t)
	paths := []string{testkit.Shared(t, "samples")}
	if !testkit.Long() {
		paths = nil
		for _, format := range []string{"claude-code", "pi-mono", "chatgpt", "codex", "gemini", "opencode"} {
			paths = append(paths, testkit.Shared(t, "samples", format))
		}
	}
	st := storetest.Open(t, "", chatctx.Options{})
	if _, err := exchange.Import(t.Context(), st, paths, exchange.Options{}); err != nil {
		t.Logf("%v", err) // some samples are damaged
	}
	raw, err := os.ReadFile(filepath.Join("testdata", "questions.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	a, asked, found := connected(t, Options{Store: st}), 0, 0
	for line := range bytes.Lines(raw) {
		var q struct{ Kind, Query, Has string }
		if err := json.Unmarshal(line, &q); err != nil {
			t.Fatal(err)
		}
		if q.Kind != "tool" && !testkit.Long() {
			continue
		}
		text, _ := a.ask("search", map[string]any{"query": q.Query})
		asked++
		if slices.ContainsFunc(placesIn(text), func(at string) bool { return holds(t, st, at, q.Has) }) {
			found++
		} else {
			t.Logf("not found: %s", q.Query)
		}
	}
	t.Logf("%d of %d", found, asked)
	if asked < 25 || found*10 < asked*9 {
		t.Errorf("%d of %d", found, asked)
	}
}

// placesIn returns the places of an answer's passages.
func placesIn(text string) (out []string) {
	for _, m := range regexp.MustCompile(`(?m)^\d+\. at (\S+),`).FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// holds reports whether the message at a place has a text.
func holds(t *testing.T, st *chatctx.Store, at, text string) bool {
	t.Helper()
	conversation, id, _ := strings.Cut(at, "/")
	c, err := st.Context(t.Context(), conversation)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := c.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	m, err := snap.Find(t.Context(), record.Ref(id))
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(m.Message)
	quoted, _ := json.Marshal(text)
	return strings.Contains(string(raw), strings.Trim(string(quoted), `"`))
}

// TestNotes: notes of a folder are in one conversation, which search finds there and nowhere else; keys are left out.
func TestNotes(t *testing.T) {
	st := storetest.Open(t, filepath.Join(t.TempDir(), "store"), chatctx.Options{Create: true})
	of := func(folder string) *agent {
		return connected(t, Options{Store: st, Folder: folder, Folders: []string{folder}, Write: true})
	}
	here, other := of("/srv/site"), of("/srv/other")
	key := "ghp_" + "x7Q2mN9vKp4RtY8wLs3BzD6fHj1CgA5eUoXi" // made up
	first, _ := here.ask("note", map[string]any{"text": "the okapi build needs CGO " + key})
	second, _ := here.ask("note", map[string]any{"text": "okapi tests are slow"})
	if a, b := placeIn(first), placeIn(second); a == "" || a[:8] != b[:8] {
		t.Errorf("%s %s", first, second)
	}
	if text, _ := here.ask("search", map[string]any{"query": "okapi"}); !strings.Contains(text, "CGO [secret]") || !strings.Contains(text, "tests are slow") {
		t.Errorf("%s", text)
	}
	if text, _ := other.ask("search", map[string]any{"query": "okapi"}); !strings.Contains(text, "nothing found") {
		t.Errorf("%s", text)
	}
	for _, text := range []string{"", " \n", strings.Repeat("x", 5000)} {
		if answer, failed := here.ask("note", map[string]any{"text": text}); !failed {
			t.Errorf("%s", answer)
		}
	}
}

// placeIn returns the place that an answer names.
func placeIn(text string) string {
	return regexp.MustCompile(`[0-9a-f]{8}/[0-9a-f]{8}`).FindString(text)
}

// TestBesideOthers: a server that only reads answers while others write the store, and knows what they wrote.
func TestBesideOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	writer := storetest.Open(t, path, chatctx.Options{Create: true})
	c := conversation(t, writer, "/srv/site", "Beside", user("first gnu"))
	reader, err := chatctx.Open(path, chatctx.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	a := connected(t, Options{Store: reader, Folders: []string{"/srv/site"}})
	for i := range 20 {
		change(t, c, func(b *chatctx.Batch) { b.Append(user(fmt.Sprintf("gnu%d is new", i))) })
		if text, failed := a.ask("search", map[string]any{"query": fmt.Sprintf("gnu%d", i)}); failed || !strings.Contains(text, "is new") {
			t.Fatalf("%d: %s", i, text)
		}
	}
}
