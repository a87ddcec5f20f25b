package branchstore

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// histories drives a few branches of one context beside plain lists of items.
type histories struct {
	t     *testing.T
	rng   *rand.Rand
	db    kv.DB
	ctx   pool.ID
	all   []*branch.Branch
	plain [][]Item
}

func (h *histories) update(fn func(kv.RwTx) error) {
	h.t.Helper()
	if err := h.db.Update(h.t.Context(), fn); err != nil {
		h.t.Fatal(err)
	}
}

func (h *histories) items(n int) []Item {
	out := make([]Item, n)
	for i := range out {
		h.rng.Read(out[i].ID[:])
		out[i].Turn = h.rng.Intn(2) == 0
	}
	return out
}

// splice changes a branch and its plain list in the same way.
func (h *histories) splice(i, at, removed int, insert []branch.Piece, items []Item) {
	h.all[i].Pieces = Splice(h.all[i].Pieces, at, removed, insert)
	h.plain[i] = slices.Concat(h.plain[i][:at], items, h.plain[i][at+removed:])
}

func (h *histories) step() {
	i := h.rng.Intn(len(h.all))
	b, n := h.all[i], len(h.plain[i])
	switch h.rng.Intn(5) {
	case 0, 1: // write somewhere
		items := h.items(1 + h.rng.Intn(5))
		at := h.rng.Intn(n + 1)
		h.update(func(tx kv.RwTx) error {
			p, err := Write(tx, h.ctx, b, items)
			if err == nil {
				h.splice(i, at, 0, []branch.Piece{p}, items)
			}
			return err
		})
	case 2: // take a run off
		at := h.rng.Intn(n + 1)
		h.splice(i, at, h.rng.Intn(n-at+1), nil, nil)
	case 3: // take a run from another
		j := h.rng.Intn(len(h.all))
		from := h.rng.Intn(len(h.plain[j]) + 1)
		to := from + h.rng.Intn(len(h.plain[j])-from+1)
		h.splice(i, h.rng.Intn(n+1), 0, Slice(h.all[j].Pieces, from, to), slices.Clone(h.plain[j][from:to]))
	case 4:
		h.update(func(tx kv.RwTx) error {
			pieces, err := Merge(tx, h.ctx, b)
			b.Pieces = pieces
			return err
		})
	}
}

func (h *histories) compare() {
	h.t.Helper()
	err := h.db.View(h.t.Context(), func(tx kv.Tx) error {
		for i, b := range h.all {
			got, err := itemsOf(tx, h.ctx, b.Pieces)
			if err != nil {
				return err
			}
			if !slices.Equal(got, h.plain[i]) {
				return fmt.Errorf("branch %d has %d entries, want %d, or others", i, len(got), len(h.plain[i]))
			}
			at := h.rng.Intn(len(got) + 1)
			turns, err := Turns(tx, h.ctx, b.Pieces, at)
			if err != nil {
				return err
			}
			if want := countTurns(h.plain[i][:at]); turns != want {
				return fmt.Errorf("branch %d begins %d turns in %d entries, want %d", i, turns, at, want)
			}
			if err := h.shared(tx, i, h.rng.Intn(len(h.all))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func countTurns(items []Item) (n int) {
	for _, item := range items {
		if item.Turn {
			n++
		}
	}
	return n
}

func (h *histories) shared(tx kv.Tx, i, j int) error {
	want := 0
	for want < len(h.plain[i]) && want < len(h.plain[j]) && h.plain[i][want] == h.plain[j][want] {
		want++
	}
	got, err := Shared(tx, h.ctx, h.all[i].Pieces, h.all[j].Pieces)
	if err == nil && got != want {
		err = fmt.Errorf("branches %d and %d share %d entries, want %d", i, j, got, want)
	}
	return err
}

// TestHistoriesAgainstLists holds pieces to plain lists over random changes.
func TestHistoriesAgainstLists(t *testing.T) {
	for seed := range testkit.Seeds(t, 20) {
		h := &histories{t: t, rng: rand.New(rand.NewSource(int64(seed))), db: memkv.New(), ctx: pool.NewID()}
		for i := range 4 {
			h.all = append(h.all, &branch.Branch{Name: fmt.Sprint(i), Segment: uint64(i + 1)})
			h.plain = append(h.plain, nil)
		}
		for range 150 {
			h.step()
			h.compare()
		}
		if err := h.db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMergeMakesFewOfMany(t *testing.T) {
	db := memkv.New()
	defer db.Close()
	ctx := pool.NewID()
	b := &branch.Branch{Name: "b", Segment: 1}
	err := db.Update(t.Context(), func(tx kv.RwTx) error {
		items := make([]Item, 1000)
		for i := range items {
			items[i].ID = pool.NewID()
		}
		if _, err := Write(tx, ctx, b, items); err != nil {
			return err
		}
		for i := range 500 { // every other entry alone
			b.Pieces = append(b.Pieces, branch.Piece{Segment: 1, From: uint64(2 * i), To: uint64(2*i + 1)})
		}
		before, err := IDs(tx, ctx, b.Pieces)
		if err != nil {
			return err
		}
		if b.Pieces, err = Merge(tx, ctx, b); err != nil {
			return err
		}
		after, err := IDs(tx, ctx, b.Pieces)
		if err != nil {
			return err
		}
		if len(b.Pieces) != 1 || !slices.Equal(before, after) {
			t.Errorf("%d pieces with the same entries: %t", len(b.Pieces), slices.Equal(before, after))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAppendStaysOnePiece holds that a branch that only grows does not gather pieces.
func TestAppendStaysOnePiece(t *testing.T) {
	var pieces []branch.Piece
	for i := range uint64(100) {
		pieces = Splice(pieces, int(i), 0, []branch.Piece{{Segment: 1, From: i, To: i + 1}})
	}
	if len(pieces) != 1 || Count(pieces) != 100 {
		t.Errorf("%v", pieces)
	}
	if i := Place(pieces, 1, 57); i != 57 {
		t.Errorf("entry 57 stands at %d", i)
	}
	if _, position, ok := At(pieces, 57); !ok || position != 57 {
		t.Errorf("place 57 has entry %d", position)
	}
}

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{"main": true, "": false, "a b": true, "ü/:": true, "a\tb": false, "\x7f": false, "a\xffb": false,
		strings.Repeat("x", 255): true, strings.Repeat("x", 256): false} {
		if err := CheckName(name); (err == nil) != ok || err != nil && !errors.Is(err, pool.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestEntryKeysKeepTheOrder compares the keys of numbers of every length, and reads them back. No other bytes are a key.
func TestEntryKeysKeepTheOrder(t *testing.T) {
	ctx := pool.NewID()
	numbers := []uint64{0, 1, 2, 246, 247, 248, 249, 255, 256}
	for shift := 16; shift < 64; shift += 8 {
		numbers = append(numbers, 1<<shift-1, 1<<shift, 1<<shift+1)
	}
	numbers = append(numbers, math.MaxUint64-1, math.MaxUint64)
	var last []byte
	for _, segment := range numbers[1:] {
		for _, position := range numbers {
			key := EntryKey(ctx, segment, position)
			if bytes.Compare(last, key) >= 0 {
				t.Errorf("the key of %d, %d does not come after the one before", segment, position)
			}
			last = key
			if s, p, ok := EntryAt(key); !ok || s != segment || p != position {
				t.Errorf("%d, %d was read as %d, %d, %t", segment, position, s, p, ok)
			}
			for n := range key {
				if s, p, ok := EntryAt(key[:n]); ok {
					t.Fatalf("%d bytes of the key of %d, %d are that of %d, %d", n, segment, position, s, p)
				}
			}
			if _, _, ok := EntryAt(append(key, 0)); ok {
				t.Errorf("a key with a byte more was read")
			}
		}
	}
	for _, wrong := range [][]byte{{0, 5}, {248, 3, 5}, {249, 0, 248, 5}, {1, 250, 0, 255, 255}, {1}} {
		if s, p, ok := EntryAt(append(ctx[:], wrong...)); ok {
			t.Errorf("%v was read as %d, %d", wrong, s, p)
		}
	}
}

// TestDamagedEntriesAreErrors cuts and drops entries: reading them says so.
func TestDamagedEntriesAreErrors(t *testing.T) {
	db := memkv.New()
	defer db.Close()
	ctx := pool.NewID()
	b := &branch.Branch{ID: pool.NewID(), Name: "b", Segment: 1}
	err := db.Update(t.Context(), func(tx kv.RwTx) error {
		p, err := Write(tx, ctx, b, []Item{{ID: pool.NewID()}, {ID: pool.NewID()}, {ID: pool.NewID()}})
		if err != nil {
			return err
		}
		if err := tx.Delete(EntryBucket, EntryKey(ctx, 1, 1)); err != nil {
			return err
		}
		if _, err := IDs(tx, ctx, []branch.Piece{p}); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("a missing entry: %v", err)
		}
		if err := tx.Put(EntryBucket, EntryKey(ctx, 1, 1), []byte("short")); err != nil {
			return err
		}
		if _, err := IDs(tx, ctx, []branch.Piece{p}); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("a short entry: %v", err)
		}
		if err := tx.Put(Bucket, Key(ctx, b.ID), []byte("no record")); err != nil {
			return err
		}
		if _, err := Get(tx, ctx, b.ID); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("a broken record: %v", err)
		}
		other := &branch.Branch{ID: pool.NewID(), Name: "other"}
		raw, err := Encode(other)
		if err != nil {
			return err
		}
		if _, err := Decode(b.ID, raw); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("a record under the id of another: %v", err)
		}
		if err := PutName(tx, ctx, "nowhere", pool.NewID()); err != nil {
			return err
		}
		if _, err := Find(tx, ctx, "nowhere"); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("a name that leads nowhere: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFreeName gives the first number that no branch has, among names that only look like numbered ones.
func TestFreeName(t *testing.T) {
	db := memkv.New()
	ctx, id := pool.NewID(), pool.NewID()
	free := func(tx kv.Tx) string {
		name, err := FreeName(tx, ctx, "main")
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	err := db.Update(t.Context(), func(tx kv.RwTx) error {
		for _, name := range []string{"main", "main.02", "main.x", "main.3", "main.-2", "mainly.2", "main.2.2", "main.99999999999999999999"} {
			if err := PutName(tx, ctx, name, id); err != nil {
				return err
			}
		}
		if got := free(tx); got != "main.2" {
			t.Errorf("the first is %q", got)
		}
		for n := 2; n <= 120; n++ {
			if err := PutName(tx, ctx, fmt.Sprint("main.", n), id); err != nil {
				return err
			}
		}
		if got := free(tx); got != "main.121" {
			t.Errorf("after main.120 comes %q", got)
		}
		if err := DeleteName(tx, ctx, "main.17"); err != nil {
			return err
		}
		if got := free(tx); got != "main.17" {
			t.Errorf("the gap is %q", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func BenchmarkFreeName(b *testing.B) {
	db := memkv.New()
	ctx, id := pool.NewID(), pool.NewID()
	err := db.Update(b.Context(), func(tx kv.RwTx) error {
		for n := range 10_000 {
			if err := PutName(tx, ctx, fmt.Sprint("main.", n), id); err != nil {
				return err
			}
		}
		for b.Loop() {
			if name, err := FreeName(tx, ctx, "main"); err != nil || name != "main.10000" {
				b.Fatal(name, err)
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
