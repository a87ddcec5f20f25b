package window

import (
	"context"
	"errors"
	"math"
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

// odd is an Embedder that answers with vectors of its own.
type odd struct{ vectors [][]float32 }

func (*odd) Name() string { return "letters" }

func (o *odd) Embed(context.Context, []string) ([][]float32, error) { return o.vectors, nil }

// TestVectorsOfAnotherLengthAreRefused: an embedding reply that cannot be compared with what is kept of its model is refused wherever one is used, and nothing of
// it is kept.
func TestVectorsOfAnotherLengthAreRefused(t *testing.T) {
	kept, nan := make([]float32, 26), make([]float32, 26)
	kept[0], nan[3] = 1, float32(math.NaN())
	for name, c := range map[string]struct {
		compact, search [][]float32
		cause           string
	}{
		"none":       {nil, nil, "0 vectors"},
		"one more":   {[][]float32{kept, kept}, [][]float32{kept}, "vectors for"},
		"empty":      {[][]float32{{}}, [][]float32{kept, {}}, "an empty vector"},
		"shorter":    {[][]float32{{1}}, [][]float32{{1}, {1}}, "a vector of 1 numbers, and those kept of letters have 26"},
		"mixed":      {[][]float32{append([]float32{1}, kept...)}, [][]float32{kept, {1}}, "have 26"},
		"no numbers": {[][]float32{nan}, [][]float32{kept, nan}, "not of numbers"},
	} {
		t.Run(name, func(t *testing.T) {
			talk, o := conversation(t, 12), options(0)
			o.CompactKeep = 500
			compact := func(text string, e Embedder) *Compacted {
				done, err := Compact(t.Context(), talk, "", o, Request{Text: text, Embedder: e})
				if err != nil {
					t.Fatal(err)
				}
				w := newWriter(1)
				for range 8 {
					if _, err := talk.Append(t.Context(), "", pool.NewText(pool.User, w.words(100))); err != nil {
						t.Fatal(err)
					}
				}
				return done
			}
			if done := compact("zzz zebra zoo", &letters{}); done.Note != "" {
				t.Fatal(done.Note)
			}
			if done := compact("apple banana", &odd{c.compact}); !strings.Contains(done.Note, "cannot be searched for later: the embedding endpoint gave") || !strings.Contains(done.Note, c.cause) {
				t.Errorf("the note is %q", done.Note)
			}
			list, err := ListSessions(t.Context(), talk, "", o)
			if err != nil || list[len(list)-1].Data[embeddingKey] != nil {
				t.Errorf("%v; kept %s", err, list[len(list)-1].Data[embeddingKey])
			}
			if hits, err := SearchSessions(t.Context(), talk, "", o, &odd{c.search}, "x"); err == nil || !strings.Contains(err.Error(), c.cause) {
				t.Errorf("a search gave %v, %v", hits, err)
			}
			if hits, err := SearchSessions(t.Context(), talk, "", o, &letters{}, "banana"); err != nil || len(hits) != 2 || hits[0].Summary != "apple banana" {
				t.Errorf("%v, %v", hits, err)
			}
		})
	}
}
