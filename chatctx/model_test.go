package chatctx_test

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/kvtest"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/pgtest"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// TestModel makes a store in each round.
const (
	modelRun  = 300 // operations on it
	modelFile = 12  // one in so many is in a file
)

// run is a store with its model, while operations are done on both.
type run struct {
	rng    *rand.Rand
	path   string // "": in memory
	db     kv.DB
	stores []*chatctx.Store // each as another process has it
	left   []*chatctx.Store // by crashes: nobody closed them
	at     int              // the process that did something last
	now    pool.Time
	words  int
	convos []*convo
	held   []*held
	laws   map[id]*law
	log    []string
	// storeUndone is the context that the store's newest operation is about, if that is an undo, which redo takes back where it is the newest; else nil.
	// storeUndoneAt is the number that the context's next operation had then.
	storeUndone   *convo
	storeUndoneAt uint64
}

// fault is what a run panics with when store and model differ.
type fault struct{ text string }

func (r *run) fail(format string, args ...any) { panic(fault{fmt.Sprintf(format, args...)}) }

func (r *run) say(format string, args ...any) {
	r.log[len(r.log)-1] += fmt.Sprintf(format, args...)
}

// open opens one of the stores, again where it is open: after a close, or as a program that was killed leaves it.
func (r *run) open(i int, crash bool) {
	o := chatctx.Options{Create: true, Program: fmt.Sprintf("model%d", i), By: "ann", Clock: func() time.Time { return r.now.Time() }, BeforeStore: hush}
	var err error
	if r.path == "" {
		r.stores[i], err = chatctx.OpenDB(r.db, o)
	} else {
		if crash {
			r.left = append(r.left, r.stores[i])
		} else if r.stores[i] != nil {
			r.must(r.stores[i].Close(), "close")
		}
		r.stores[i], err = chatctx.Open(r.path, o)
	}
	r.must(err, "open")
}

// hush is the embedder's hook: it takes a word out of whatever text is stored.
func hush(m *chatctx.Message) error {
	for i := range m.Content {
		m.Content[i].Text = hushed(m.Content[i].Text)
	}
	if m.Result != nil {
		m.Result.Text = hushed(m.Result.Text)
	}
	return nil
}

func (r *run) newConvo() {
	text := r.text()
	c, err := r.store().New(bg, record.NewContext{Title: text, Stay: true})
	r.must(err, "new")
	info, err := c.Branch(bg, "")
	r.must(err, "main")
	main := info.ID
	r.storeUndone = nil
	r.convos = append(r.convos, &convo{id: c.ID, order: []id{main}, branches: map[id]*branchState{main: {name: chatctx.MainBranch, tokens: -1}}, aside: map[id]*branchState{}, from: map[id]id{}, active: main,
		ctx: &contextState{title: hushed(text), tags: map[string]id{}, marks: map[id]string{}, notes: map[id]string{}}, messages: map[id]*message{},
		calls: map[callKey]callState{}, claims: map[callKey]*claim{}, replies: map[id]*reply{}, keys: map[string]*keyed{}, last: map[id]uint64{},
		newest: map[id]uint64{}, storeAt: 1})
}

// pickWeighted chooses one of several by their weights.
func pickWeighted[T any](rng *rand.Rand, all []T, weight func(int) int) T {
	sum := 0
	for i := range all {
		sum += weight(i)
	}
	n := rng.Intn(sum)
	for i := range all {
		if n -= weight(i); n < 0 {
			return all[i]
		}
	}
	panic("unreachable")
}

// step does the operation that a seed stands for.
func (r *run) step(seed int64) {
	r.rng = rand.New(rand.NewSource(seed))
	r.now += pool.Time(r.rng.Intn(1e6))
	if r.rng.Intn(40) == 0 {
		r.now += pool.Time(r.rng.Int63n(7200e6))
	}
	c := r.convos[r.rng.Intn(len(r.convos))]
	r.log = append(r.log, fmt.Sprintf("%s: ", record.Short(c.id)))
	for {
		op := pickWeighted(r.rng, operations, func(i int) int { return operations[i].weight })
		if err := op.do(r, c); !errors.Is(err, errSkip) {
			break
		}
	}
	for _, x := range r.convos {
		r.compare(x, x == c, r.rng.Intn(24) == 0)
	}
	if r.rng.Intn(60) == 0 {
		r.checkAll()
	}
}

// play does operations on a new store and says what went wrong, "" for nothing.
func play(dir string, file bool, seeds []int64) (wrong string, log []string) {
	r := &run{rng: rand.New(rand.NewSource(1)), now: pool.TimeOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), stores: make([]*chatctx.Store, 2), laws: map[id]*law{}, log: []string{""}}
	defer func() {
		log = r.log
		for _, s := range append(r.stores, r.left...) {
			if s != nil {
				_ = s.Close()
			}
		}
		switch p := recover().(type) {
		case nil:
		case fault:
			wrong = p.text
		default:
			wrong = fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if pgtest.Asked() && pgtest.Server != nil {
		r.path = pgtest.Server.URL(pgtest.Name(), "pool_max_conns=2")
	} else if file {
		d, err := os.MkdirTemp(dir, "")
		r.must(err, "folder")
		defer os.RemoveAll(d)
		r.path = filepath.Join(d, "model.db")
	} else {
		r.db = kvtest.Twice{DB: memkv.New()}
	}
	for i := range r.stores {
		r.open(i, false)
	}
	r.newConvo()
	for _, seed := range seeds {
		r.step(seed)
	}
	for _, c := range r.convos {
		r.compare(c, true, true)
	}
	r.checkAll()
	return "", nil
}

// shrink leaves out operations as long as something goes wrong, and gives what is left.
func shrink(seeds []int64, wrong func([]int64) bool) []int64 {
	tries := 150
	for size := len(seeds) / 2; size > 0 && tries > 0; {
		less := false
		for at := 0; at+size <= len(seeds) && tries > 0; tries-- {
			if try := slices.Delete(slices.Clone(seeds), at, at+size); wrong(try) {
				seeds, less = try, true
			} else {
				at += size
			}
		}
		if !less || size > 1 {
			size /= 2
		}
	}
	return seeds
}

// TestModel does random operations on stores and on plain maps, and holds one against the other after each.
func TestModel(t *testing.T) {
	dir := t.TempDir()
	for seed := range testkit.Seeds(t, testkit.Fewer(40)) {
		file := seed%modelFile == 0
		seeds := make([]int64, modelRun)
		rng := rand.New(rand.NewSource(int64(seed)))
		for i := range seeds {
			seeds[i] = rng.Int63()
		}
		wrong, log := play(dir, file, seeds)
		if wrong == "" {
			continue
		}
		t.Errorf("seed %d, operation %d: %s", seed, len(log), wrong)
		short := shrink(seeds[:len(log)-1], func(s []int64) bool {
			w, _ := play(dir, file, s)
			return strings.HasPrefix(w, wrong[:min(10, len(wrong))])
		})
		wrong, log = play(dir, file, short)
		t.Fatalf("shrunk to %d operations: %s\n%s", len(short), wrong, strings.Join(log, "\n"))
	}
}
