package enhancer

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/pool"
)

// letters is an Embedder: it counts each letter in a text.
type letters struct {
	asked int
	err   error
}

func (l *letters) Name() string { return "letters" }

func (l *letters) Embed(_ context.Context, texts []string) ([][]float32, error) {
	if l.err != nil {
		return nil, l.err
	}
	l.asked += len(texts)
	out := make([][]float32, len(texts))
	for i, t := range texts {
		out[i] = make([]float32, 26)
		for _, r := range strings.ToLower(t) {
			if r >= 'a' && r <= 'z' {
				out[i][r-'a']++
			}
		}
	}
	return out, nil
}

func TestSearchSessions(t *testing.T) {
	c := conversation(t, 12)
	o := options(0)
	o.CompactKeep = 500
	embedder := &letters{}
	for i, text := range []string{"zzz zebra zoo", "apple banana", "quick fox"} {
		r := Request{Text: text, Embedder: embedder}
		if i == 2 {
			r.Embedder = &letters{err: errors.New("down")} // the compaction succeeds without it
		}
		if _, err := Compact(t.Context(), c, "", o, r); err != nil {
			t.Fatal(err)
		}
		w := newWriter(int64(i))
		for range 8 {
			if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, w.words(100))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if embedder.asked != 2 {
		t.Errorf("asked for %d vectors while compacting", embedder.asked)
	}
	hits, err := SearchSessions(t.Context(), c, "", o, embedder, "a banana")
	if err != nil {
		t.Fatal(err)
	}
	if len(hits) != 3 || hits[0].Summary != "apple banana" || hits[0].Number != 2 || hits[0].Score <= hits[1].Score || hits[0].Score > 1.001 {
		t.Errorf("%+v", hits)
	}
	if embedder.asked != 4 { // the query, and the one that failed
		t.Errorf("asked for %d vectors in all", embedder.asked)
	}
	if _, err := SearchSessions(t.Context(), c, "", o, &letters{err: errors.New("down")}, "x"); err == nil {
		t.Error("an endpoint that is down gave hits")
	}
}
