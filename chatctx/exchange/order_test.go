package exchange

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// The final contents of a store are the same for every order and division of the files, except for ids, operations, the current context, the active branch and
// numbers in names.

// conversationSeen is the result of importing a context.
type conversationSeen struct {
	title, parent string
	task          string // the call that it answers, and how
	root          *nodeSeen
}

// nodeSeen is a place in the tree of all branches of a context.
type nodeSeen struct {
	below map[string]*nodeSeen
}

func (n *nodeSeen) write(b *strings.Builder, depth int) {
	keys := make([]string, 0, len(n.below))
	for k := range n.below {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		fmt.Fprintf(b, "%*s%s\n", depth, "", k)
		n.below[k].write(b, depth+1)
	}
}

// contentsOf describes all conversations of a store.
func contentsOf(t *testing.T, s *chatctx.Store) string {
	t.Helper()
	ctx := context.Background()
	all := map[chatctx.ID]*conversationSeen{}
	key, node := map[chatctx.ID]string{}, map[chatctx.ID]string{}
	var copies []func()
	for info, err := range s.Contexts(ctx, record.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Context(ctx, info.ID.String())
		if err != nil {
			t.Fatal(err)
		}
		seen := &conversationSeen{title: info.Title, root: &nodeSeen{below: map[string]*nodeSeen{}}}
		all[info.ID], key[info.ID] = seen, "empty "+info.Title
		branches, err := c.Branches(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range branches {
			snap, err := c.Snapshot(ctx, b.Name)
			if err != nil {
				t.Fatal(err)
			}
			at := seen.root
			for e, err := range snap.Entries(ctx, 1, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if src := e.Source; src != nil && src.Node != "" && src.Conversation != "" {
					key[info.ID], node[e.ID] = src.Format+" "+src.Conversation, src.Format+" "+src.Conversation+" "+src.Node
				}
				words := poolstore.Words(e.Message)
				name := fmt.Sprintf("%s %x %.40q", e.Role, words[:6], e.Text())
				if at.below[name] == nil {
					at.below[name] = &nodeSeen{below: map[string]*nodeSeen{}}
				}
				at = at.below[name]
				if from := e.CopiedFrom; from != nil {
					here := at
					copies = append(copies, func() { here.below["copy of "+node[*from]] = &nodeSeen{} })
				}
			}
		}
		if info.Parent != (chatctx.ID{}) {
			parent := info.Parent
			copies = append(copies, func() { seen.parent = key[parent] })
			if task, err := c.TaskInfo(ctx); err == nil {
				copies = append(copies, func() {
					seen.task = fmt.Sprintf(", %s: %s:%d by %s, %d", task.State, node[task.Message], task.Index, node[task.Summary], task.Ended)
				})
			}
		}
	}
	for _, f := range copies {
		f()
	}
	var out []string
	for id, seen := range all {
		var b strings.Builder
		fmt.Fprintf(&b, "%s %q below %q%s\n", key[id], seen.title, seen.parent, seen.task)
		seen.root.write(&b, 1)
		out = append(out, b.String())
	}
	slices.Sort(out)
	return strings.Join(out, "")
}

// permuted imports files in an order, and divided into commands, by the seed.
func permuted(t *testing.T, files []string, seed uint64) (string, string) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	files = slices.Clone(files)
	r.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	s := memoryStore(t)
	var how []string
	for len(files) > 0 {
		n := 1 + r.IntN(min(len(files), 1+r.IntN(8)))
		if _, err := Import(context.Background(), s, files[:n], Options{}); err != nil {
			t.Fatal(err)
		}
		for _, f := range files[:n] {
			how = append(how, filepath.Base(f))
		}
		how, files = append(how, "|"), files[n:]
	}
	storetest.Check(t, s)
	return contentsOf(t, s), strings.Join(how, " ")
}

// sameInEveryOrder checks the property for a set of files.
func sameInEveryOrder(t *testing.T, files []string, rounds int, seed uint64) {
	t.Helper()
	want, first := permuted(t, files, seed)
	for i := 1; i < rounds; i++ {
		if got, how := permuted(t, files, seed+uint64(i)); got != want {
			t.Fatalf("seed %d and %d: %s\nand %s\ncome to different stores:\n%s", seed, seed+uint64(i), first, how, firstDifference(got, want))
		}
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range x {
		if i >= len(y) || x[i] != y[i] {
			from := max(0, i-6)
			return strings.Join(x[from:min(len(x), i+4)], "\n") + "\n--- and\n" + strings.Join(y[from:min(len(y), i+4)], "\n")
		}
	}
	return "one goes on: " + strings.Join(y[len(x):], "\n")
}

// filesUnder returns all files of a folder except those of the tests.
func filesUnder(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && !strings.HasSuffix(p, ".golden") && !strings.HasSuffix(p, ".md") {
			files = append(files, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestOrderOfFiles permutes the inputs of each format.
func TestOrderOfFiles(t *testing.T) {
	dirs, err := filepath.Glob("testdata/formats/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal(dirs, err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) { sameInEveryOrder(t, filesUnder(t, dir), 4, 1) })
	}
}

// TestOrderOfSharedFiles permutes samples and cases beside the project.
func TestOrderOfSharedFiles(t *testing.T) {
	for _, what := range []string{"samples", "cases"} {
		dirs, err := os.ReadDir(testkit.Shared(t, what))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range dirs {
			if !d.IsDir() {
				continue
			}
			t.Run(d.Name(), func(t *testing.T) {
				var files []string
				for _, f := range filesUnder(t, filepath.Join(testkit.Shared(t, what), d.Name())) {
					if info, err := os.Stat(f); err == nil && info.Size() < 200_000 {
						files = append(files, f)
					}
				}
				if len(files) > 1 {
					sameInEveryOrder(t, files, 2, 1)
				}
			})
		}
	}
}

// TestOrderOfStates permutes states of conversations that grow, branch, and change their texts and titles.
func TestOrderOfStates(t *testing.T) {
	for seed := range testkit.Seeds(t, 30) {
		r := rand.New(rand.NewPCG(seed, 1))
		dir := t.TempDir()
		var files []string
		for c := range 1 + r.IntN(3) {
			h := &changing{r: r, id: fmt.Sprint("c", c), format: r.IntN(2)}
			for n := range 2 + r.IntN(4) {
				h.step()
				files = append(files, write(t, filepath.Join(dir, fmt.Sprintf("%d-%d%s", c, n, []string{".json", ".jsonl"}[h.format])), h.file(1_700_000_000+int64(n)*1000)))
			}
		}
		sameInEveryOrder(t, files, 4, seed)
	}
}

// changing is a conversation that changes from one export to the next.
type changing struct {
	r      *rand.Rand
	id     string
	format int // 0: ChatGPT, 1: Claude Code
	title  string
	nodes  []changingNode
}

type changingNode struct {
	text   string
	parent int // -1: none
}

func (h *changing) step() {
	for range 1 + h.r.IntN(4) {
		switch n := len(h.nodes); h.r.IntN(6) {
		case 0:
			h.title = fmt.Sprint("title ", h.r.IntN(1000))
		case 1:
			if n > 0 {
				h.nodes[h.r.IntN(n)].text += " and more"
			}
		case 2:
			if n > 0 {
				h.nodes[h.r.IntN(n)].text = fmt.Sprint("text ", h.r.IntN(1000))
			}
		default:
			parent := n - 1
			if n > 1 && h.r.IntN(4) == 0 {
				parent = h.r.IntN(n)
			}
			h.nodes = append(h.nodes, changingNode{fmt.Sprint("word ", h.r.IntN(1000)), parent})
		}
	}
	if len(h.nodes) == 0 {
		h.nodes = []changingNode{{"first", -1}}
	}
}

func (h *changing) file(at int64) string {
	var list []string
	for i, n := range h.nodes {
		role := []string{"user", "assistant"}[i%2]
		parent := "null"
		if n.parent >= 0 {
			parent = fmt.Sprintf(`"n%d"`, n.parent)
		}
		if h.format == 0 {
			list = append(list, fmt.Sprintf(`"n%d":{"id":"n%d","parent":%s,"message":{"author":{"role":%q},"content":{"content_type":"text","parts":[%q]}}}`, i, i, parent, role, n.text))
		} else {
			list = append(list, fmt.Sprintf(`{"type":%q,"uuid":"n%d","parentUuid":%s,"sessionId":%q,"timestamp":%q,"message":{"role":%q,"content":%q}}`, role, i, parent, h.id,
				pool.Time(at*1_000_000).Time().Format("2006-01-02T15:04:05Z"), role, n.text))
		}
	}
	if h.format == 0 {
		return fmt.Sprintf(`[{"conversation_id":%q,"title":%q,"update_time":%d,"current_node":"n%d","mapping":{%s}}]`, h.id, h.title, at, len(h.nodes)-1, strings.Join(list, ","))
	}
	return strings.Join(append(list, fmt.Sprintf(`{"type":"custom-title","customTitle":%q,"sessionId":%q}`, h.title, h.id)), "\n") + "\n"
}
