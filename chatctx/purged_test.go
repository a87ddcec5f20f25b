package chatctx

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// drain reads a sequence to its end.
func drain[T any](all iter.Seq2[T, error]) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

func noErr(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// readers are all ways to read by a value that was taken earlier: those of a snapshot, and those of a context.
func readers(c *ChatContext, s *Snapshot) (ofSnapshot, ofContext map[string]func(context.Context) error) {
	ofSnapshot = map[string]func(context.Context) error{
		"Entries":   func(ctx context.Context) error { return drain(s.Entries(ctx, 1, 0)) },
		"backwards": func(ctx context.Context) error { return drain(s.Entries(ctx, s.Len(), 1)) },
		"Page":      func(ctx context.Context) error { return second(s.Page(ctx, 2, 3)) },
		"IDs":       func(ctx context.Context) error { return second(s.IDs(ctx)) },
		"Turns":     func(ctx context.Context) error { return second(s.Turns(ctx)) },
		"Find":      func(ctx context.Context) error { return second(s.Find(ctx, "@3")) },
		"Place":     func(ctx context.Context) error { return second(s.Place(ctx, "@3")) },
		"Locate":    func(ctx context.Context) error { _, _, _, err := s.Locate(ctx, "@3"); return err },
		"Within":    func(ctx context.Context) error { _, _, err := s.Within(ctx, 1, s.Len(), 1<<20); return err },
		"Range":     func(ctx context.Context) error { return second(s.Range(ctx, "@1..@3")) },
	}
	ofContext = map[string]func(context.Context) error{
		"Info":      func(ctx context.Context) error { return second(c.Info(ctx)) },
		"Branches":  func(ctx context.Context) error { return second(c.Branches(ctx)) },
		"Branch":    func(ctx context.Context) error { return second(c.Branch(ctx, "")) },
		"Effective": func(ctx context.Context) error { return second(c.Effective(ctx, "")) },
		"Ignored":   func(ctx context.Context) error { return second(view.Ignored(ctx, base.ContextOf(c.Store(), c.ID), "")) },
		"Tags":      func(ctx context.Context) error { return second(c.Tags(ctx)) },
		"Marks":     func(ctx context.Context) error { return second(c.Marks(ctx)) },
		"Message":   func(ctx context.Context) error { return second(c.Message(ctx, pool.NewID())) },
		"Counts":    func(ctx context.Context) error { return second(c.Counts(ctx, "x", []ID{pool.NewID()})) },
		"Draft":     func(ctx context.Context) error { return second(c.Draft(ctx, "")) },
		"Facts":     func(ctx context.Context) error { return drain(view.Facts(ctx, base.ContextOf(c.Store(), c.ID))) },
		"Snapshot":  func(ctx context.Context) error { return second(c.Snapshot(ctx, "")) },
		"Look":      func(ctx context.Context) error { return second(c.Look(ctx, "", 3)) },
		"Diff":      func(ctx context.Context) error { return second(c.Diff(ctx, "", "main")) },
		"DiffSize": func(ctx context.Context) error {
			return second(view.DiffSize(ctx, base.ContextOf(c.Store(), c.ID), "", "main"))
		},
		"Tree":    func(ctx context.Context) error { return second(c.Tree(ctx)) },
		"Tokens":  func(ctx context.Context) error { return second(view.Tokens(ctx, base.ContextOf(c.Store(), c.ID), "")) },
		"Compare": func(ctx context.Context) error { return second(c.Compare(ctx, "", "@1", "@2")) },
		"CompareSize": func(ctx context.Context) error {
			return second(view.CompareSize(ctx, base.ContextOf(c.Store(), c.ID), "", "@1", "@2"))
		},
		"Stream":  func(ctx context.Context) error { return c.Stream(ctx, func(record.Streamed) error { return nil }) },
		"Queued":  func(ctx context.Context) error { return second(view.Queued(ctx, base.ContextOf(c.Store(), c.ID), "")) },
		"Running": func(ctx context.Context) error { return second(view.Running(ctx, base.ContextOf(c.Store(), c.ID), "")) },
		"LastRequest": func(ctx context.Context) error {
			return second(view.LastRequest(ctx, base.ContextOf(c.Store(), c.ID), "", "x"))
		},
		"Settled":    func(ctx context.Context) error { return second(c.Settled(ctx)) },
		"SettleDead": func(ctx context.Context) error { return c.SettleDead(ctx) },
		"OpenCalls": func(ctx context.Context) error {
			return second(toolcall.OpenCalls(ctx, base.ContextOf(c.Store(), c.ID), ""))
		},
		"Judge": func(ctx context.Context) error {
			return second(toolcall.JudgeTool(ctx, base.ContextOf(c.Store(), c.ID), "", "x", nil))
		},
		"TaskInfo": func(ctx context.Context) error { return second(c.TaskInfo(ctx)) },
	}
	return ofSnapshot, ofContext
}

// TestWhatIsPurgedIsNotDamaged takes a context and a snapshot, removes what they are of in each way there is, and reads them through every door: what is gone
// is ErrPurged, never ErrDamaged, and what stays can be read.
func TestWhatIsPurgedIsNotDamaged(t *testing.T) {
	for name, remove := range map[string]struct {
		do      func(t *testing.T, s *Store, c *ChatContext)
		context bool // the context goes
		reads   map[string]bool
	}{
		"PurgeContext": {func(t *testing.T, s *Store, c *ChatContext) {
			noErr(t, second(s.Maintenance().PurgeContext(t.Context(), c.ID.String(), PurgeOptions{})))
		}, true, nil},
		"gc of the trash": {func(t *testing.T, s *Store, c *ChatContext) {
			noErr(t, second(s.Trash(t.Context(), c.ID.String())))
			s.at().Clock = func() time.Time { return time.Now().Add(1000 * time.Hour) }
			noErr(t, second(s.Maintenance().GC(t.Context(), record.GCOptions{OlderThan: time.Hour})))
		}, true, nil},
		"PurgeBranch": {func(t *testing.T, s *Store, c *ChatContext) {
			noErr(t, second(s.Maintenance().PurgeBranch(t.Context(), c.ID.String(), "work", PurgeOptions{})))
		}, false, nil},
		"PurgeMessages": {func(t *testing.T, s *Store, c *ChatContext) {
			noErr(t, second(s.Maintenance().PurgeMessages(t.Context(), c.ID.String(), "work", []record.Ref{"@3"}, PurgeOptions{})))
		}, false, map[string]bool{"Turns": true, "Tail": true}},
		"rewind and gc": {func(t *testing.T, s *Store, c *ChatContext) {
			b := c.Begin("work")
			b.Rewind("@2")
			commit(t, b)
			s.at().Clock = func() time.Time { return time.Now().Add(1000 * time.Hour) }
			noErr(t, second(s.Maintenance().GC(t.Context(), record.GCOptions{OlderThan: time.Hour})))
		}, false, map[string]bool{"Turns": true}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, "")
			c := newContext(t, s, "stays")
			noErr(t, second(c.Append(t.Context(), "", says("a", ">b")...)))
			b := c.Begin("")
			b.Fork("work", ForkOptions{At: "@1", Stay: true})
			commit(t, b)
			noErr(t, second(c.Append(t.Context(), "work", says("one", ">two", "three", ">four")...)))
			snap, err := c.Snapshot(t.Context(), "work")
			noErr(t, err)
			ofSnapshot, ofContext := readers(c, snap)
			for _, read := range ofSnapshot {
				noErr(t, read(t.Context()))
			}
			remove.do(t, s, c)
			for name, read := range ofSnapshot {
				if err := read(t.Context()); !errors.Is(err, ErrPurged) && !(err == nil && remove.reads[name]) || errors.Is(err, ErrDamaged) {
					t.Errorf("%s of a snapshot: %v, want ErrPurged", name, err)
				}
			}
			for name, read := range ofContext {
				err := read(t.Context())
				if is := errors.Is(err, ErrPurged) && errors.Is(err, ErrNotFound); is != remove.context || errors.Is(err, ErrDamaged) {
					t.Errorf("%s of a context: %v; purged: %v, want %v", name, err, is, remove.context)
				}
			}
		})
	}
}

// TestAGapThatNobodyMadeIsDamage: a snapshot does not take damage for a purge, also where something else was purged.
func TestAGapThatNobodyMadeIsDamage(t *testing.T) {
	for _, purged := range []bool{false, true} {
		t.Run(fmt.Sprint(purged), func(t *testing.T) {
			s, err := OpenDB(memkv.New(), Options{Program: "test"})
			noErr(t, err)
			defer s.at().Close()
			c := newContext(t, s, "a", ">b", "c", ">d")
			snap, err := c.Snapshot(t.Context(), "")
			noErr(t, err)
			page, err := snap.Page(t.Context(), 2, 2)
			noErr(t, err)
			if purged {
				noErr(t, second(s.Maintenance().PurgeMessages(t.Context(), c.ID.String(), "", []record.Ref{"@4"}, PurgeOptions{})))
			}
			noErr(t, s.at().DB.Update(t.Context(), func(tx kv.RwTx) error {
				return tx.Delete(poolstore.Bucket, branchstore.Key(c.ID, page[0].ID))
			}))
			if _, err := snap.Page(t.Context(), 1, 3); !errors.Is(err, ErrDamaged) || errors.Is(err, ErrPurged) {
				t.Errorf("a message that is missing: %v, want ErrDamaged", err)
			}
		})
	}
}

// TestASnapshotIsAsItWasOrPurged takes snapshots between random changes, gc and purges: each gives the ids that it had, or ErrPurged.
func TestASnapshotIsAsItWasOrPurged(t *testing.T) {
	for seed := range testkit.Seeds(t, 15) {
		s, clock := clocked(t)
		rnd := rand.New(rand.NewPCG(seed, 1))
		c := newContext(t, s, "a", ">b", "c", ">d")
		type taken struct {
			*Snapshot
			ids []ID
		}
		var all []taken
		for i := range 40 {
			clock.move(time.Hour)
			infos, err := c.Branches(t.Context())
			noErr(t, err)
			on := infos[rnd.IntN(len(infos))].Name
			snap, err := c.Snapshot(t.Context(), on)
			noErr(t, err)
			ids, err := snap.IDs(t.Context())
			noErr(t, err)
			all = append(all, taken{snap, ids})
			b := c.Begin(on)
			switch rnd.IntN(7) {
			case 0:
				_, err = s.Maintenance().GC(t.Context(), record.GCOptions{OlderThan: time.Minute, KeepOperations: rnd.IntN(4)})
			case 1:
				_, err = s.Maintenance().PurgeMessages(t.Context(), c.ID.String(), on, []record.Ref{"@1"}, PurgeOptions{})
			case 2:
				_, err = s.Maintenance().PurgeBranch(t.Context(), c.ID.String(), on, PurgeOptions{})
			case 3:
				b.Fork(fmt.Sprint("n", i), ForkOptions{Stay: rnd.IntN(2) == 0})
			case 4:
				b.Drop("@2")
			case 5:
				b.Insert("@1", says(fmt.Sprint(i))...)
			}
			b.Append(says(fmt.Sprint("m", i))...)
			if _, did := b.Commit(t.Context()); err != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound) || errors.Is(did, ErrDamaged) {
				t.Fatalf("seed %d: %v, %v", seed, err, did)
			}
			for _, was := range all {
				ids, err := was.IDs(t.Context())
				page, pageErr := was.Page(t.Context(), 1, 0)
				if err == nil && !slices.Equal(ids, was.ids) || pageErr == nil && len(page) != len(was.ids) || err != nil && !errors.Is(err, ErrPurged) || pageErr != nil && !errors.Is(pageErr, ErrPurged) {
					t.Fatalf("seed %d, step %d: %v, %v: %d ids, were %d", seed, i, err, pageErr, len(ids), len(was.ids))
				}
			}
		}
	}
}
