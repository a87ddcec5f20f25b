package chatctx

import (
	"context"
	"fmt"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/pool"
)

// sourceScans is an engine that counts the records of the source bucket that changes look through.
type sourceScans struct {
	kv.DB
	n int
}

func (s *sourceScans) Update(ctx context.Context, fn func(kv.RwTx) error) error {
	return s.DB.Update(ctx, func(tx kv.RwTx) error { return fn(sourceScansTx{tx, s}) })
}

type sourceScansTx struct {
	kv.RwTx
	of *sourceScans
}

func (t sourceScansTx) Scan(bucket string, r kv.Range, fn func(key, value []byte) error) error {
	return t.RwTx.Scan(bucket, r, func(key, value []byte) error {
		if bucket == base.SourceBucket {
			t.of.n++
		}
		return fn(key, value)
	})
}

// TestFollowersAreLinear imports conversations that each continue a message of the one before, in the order of the file, in the other one, and with what they
// continue stored before: each stands below the one it continues, and three times as many take three times as long.
func TestFollowersAreLinear(t *testing.T) {
	count := func(n, stored int, backwards bool) int {
		db := &sourceScans{DB: memkv.New()}
		s, err := OpenDB(db, Options{Create: true, Program: "test"})
		if err != nil {
			t.Fatal(err)
		}
		all := make([]*record.Incoming, n)
		for i := range all {
			in := &record.Incoming{Format: "test", Conversation: fmt.Sprint("c", i), Title: fmt.Sprint(i), Branches: []record.IncomingBranch{{Name: "main", Leaf: 2}}, Nodes: []record.Node{
				{ID: fmt.Sprint("q", i), Message: says("a")[0]}, {ID: fmt.Sprint("a", i), Parent: 1, Message: says(">b")[0]}}}
			if i > 0 {
				in.Follows = fmt.Sprint("a", i-1)
			}
			all[i] = in
		}
		if backwards {
			for i := range n / 2 {
				all[i], all[n-1-i] = all[n-1-i], all[i]
			}
		}
		if stored > 0 {
			must(s.Import(t.Context(), all[:stored]))(t)
		}
		db.n = 0
		must(s.Import(t.Context(), all[stored:]))(t)
		scanned := db.n
		ids := map[string]ID{}
		parents := map[string]ID{}
		for c, err := range s.Contexts(t.Context(), record.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			ids[c.Title], parents[c.Title] = c.ID, c.Parent
		}
		for i := range n {
			want := pool.ID{}
			if i > 0 {
				want = ids[fmt.Sprint(i-1)]
			}
			if got := parents[fmt.Sprint(i)]; got != want {
				t.Fatalf("of %d, %d of them before, backwards %v: the parent of %d is %v, want %v", n, stored, backwards, i, got, want)
			}
		}
		checkStore(t, s)
		return scanned
	}
	for _, backwards := range []bool{false, true} {
		for _, before := range []int{0, 3} { // a third, or none
			at := func(n int) int { return count(n, n*before/9, backwards) }
			if few, many := at(30), at(90); many > 3*few+10 {
				t.Errorf("backwards %v, %d of nine before: %d records are looked through for 30 conversations, %d for 90", backwards, before, few, many)
			}
		}
	}
}
