package exchange

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

func testReading() *reading {
	rep := &Report{limit: 100}
	return &reading{file: &file{name: "test"}, report: rep}
}

// TestTreeOfAnything gives tree random links, with cycles and orphans: it ends, every message is on a branch and has at most one parent, which comes before it,
// and the result depends only on the input.
func TestTreeOfAnything(t *testing.T) {
	for seed := range testkit.Seeds(t, 2000) {
		build := func() (*record.Incoming, *Report) {
			r := rand.New(rand.NewPCG(seed, 0))
			n := 1 + r.IntN(12)
			records := make([]sourceNode, n)
			for i := range records {
				records[i] = sourceNode{id: fmt.Sprint(i), orphan: r.IntN(5) == 0}
				if r.IntN(6) > 0 {
					records[i].parent = fmt.Sprint(r.IntN(n + 2))
				}
				for range r.IntN(3) {
					records[i].children = append(records[i].children, fmt.Sprint(r.IntN(n+1)))
				}
				if r.IntN(5) > 0 {
					records[i].message = pool.NewText([]pool.Role{pool.User, pool.Assistant, pool.System}[r.IntN(3)], "x")
					records[i].message.Hidden = r.IntN(4) == 0
					records[i].message.Created = pool.Time(r.IntN(4))
				}
			}
			in := &record.Incoming{Format: "test", Conversation: "c", Title: "t"}
			rd := testReading()
			rd.tree(in, records, fmt.Sprint(r.IntN(n+1)), place{})
			want := 0
			for _, rec := range records {
				if rec.message != nil {
					want++
				}
			}
			if len(in.Nodes) != want || rd.report.Structural != n-want {
				t.Fatalf("seed %d: %d nodes of %d messages, %d structural", seed, len(in.Nodes), want, rd.report.Structural)
			}
			return in, rd.report
		}
		a, _ := build()
		for _, n := range a.Nodes {
			source(n.Message)
		}
		if len(a.Nodes) > 0 {
			checkIncoming(t, a)
		}
		b, _ := build()
		for i := range a.Branches {
			if a.Branches[i].Name != b.Branches[i].Name || a.Branches[i].Leaf != b.Branches[i].Leaf {
				t.Fatalf("seed %d: two readings differ", seed)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestTreeOfADeepConversation walks without recursion.
func TestTreeOfADeepConversation(t *testing.T) {
	records := make([]sourceNode, 300_000)
	for i := range records {
		records[i] = sourceNode{id: fmt.Sprint(i), message: pool.NewText(pool.User, "x")}
		if i > 0 {
			records[i].parent = fmt.Sprint(i - 1)
		}
	}
	in := &record.Incoming{}
	testReading().tree(in, records, "299999", place{})
	if len(in.Nodes) != len(records) || len(in.Branches) != 1 {
		t.Errorf("%d nodes on %d branches", len(in.Nodes), len(in.Branches))
	}
}

func TestSiblingsKeepTheFilesOrder(t *testing.T) {
	kid := func(id string, created pool.Time) sourceNode {
		m := pool.NewText(pool.Assistant, id)
		m.Created = created
		return sourceNode{id: id, parent: "q", message: m}
	}
	for name, c := range map[string]struct {
		children []string
		want     string
	}{
		"listed":        {[]string{"c", "a", "b"}, "q c a b"},
		"partly listed": {[]string{"b"}, "q b c a"},
		"not listed":    {nil, "q c a b"},
		"listed twice":  {[]string{"c", "c", "b", "a", "nobody"}, "q c b a"},
	} {
		records := []sourceNode{{id: "q", children: c.children, message: pool.NewText(pool.User, "q")}, kid("a", 5), kid("b", 9), kid("c", 1)}
		in := &record.Incoming{}
		testReading().tree(in, records, "a", place{})
		var ids []string
		for _, n := range in.Nodes {
			ids = append(ids, n.ID)
		}
		if got := strings.Join(ids, " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestBranchNames checks the names in trees that are written as paths; the first is the active one.
func TestBranchNames(t *testing.T) {
	for _, c := range []struct{ paths, names string }{
		{"u1 a1", "main"},
		{"u1 a2,u1 a1", "main,answer 2 of u1"},
		{"u1 a1 u3 a3,u1 a1 u2 a2", "main,edit 2 of u2"},
		{"u1 a1,u2 a2,u3 a3", "main,edit 2 of u1,edit 3 of u1"},
		{"u1 h1 a1,u1 h2 a2", "main,answer 2 of u1"},
		{"u1 a1,h1 u2 a2", "main,edit 2 of u1"},
		{"u1 a1,u2 a2,u2 a3,u2 a3 u4 a4,u2 a3 u5 a5", "main,edit 2 of u1,answer 2 of u1 in edit 2 of u1,edit 2 of u2 in answer 2 of u1"},
		{"u1,u1 a1 u2", "main,answer 1 of u1"},
	} {
		var records []sourceNode
		seen := map[string]bool{}
		active := ""
		for i, path := range strings.Split(c.paths, ",") {
			parent := ""
			for _, id := range strings.Fields(path) {
				if !seen[id] {
					seen[id] = true
					role := map[byte]pool.Role{'u': pool.User, 'a': pool.Assistant, 'h': pool.System}[id[0]]
					m := pool.NewText(role, id)
					m.Hidden = id[0] == 'h'
					records = append(records, sourceNode{id: id, parent: parent, message: m})
				}
				parent = id
			}
			if i == 0 {
				active = parent
			}
		}
		in := &record.Incoming{}
		testReading().tree(in, records, active, place{})
		var names []string
		for _, b := range in.Branches {
			names = append(names, b.Name)
		}
		want := strings.Split(c.names, ",")
		if !slices.Equal(names, want) {
			t.Errorf("%s: %q, want %q", c.paths, names, want)
		}
	}
}
