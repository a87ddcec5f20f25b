package find_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/pool"
)

var update = flag.Bool("update", false, "write the golden files anew")

// texts makes conversations to search.
var texts = storetest.Step{What: "texts", Do: func(s *storetest.Scene) (any, error) {
	c, err := s.Store.New(s.T.Context(), record.NewContext{Title: "Trains of Europe", System: "Talk of trains", Messages: []*pool.Message{
		pool.NewText(pool.User, "When does the night train to Rome leave?"), pool.NewText(pool.Assistant, "The train leaves at nine. The train to Zürich leaves at ten."),
		pool.NewText(pool.User, "And parseHTTPRequest of v1.2.3?")}})
	s.Must(err)
	s.C = c
	b := c.Begin("main")
	b.Append(&pool.Message{Role: pool.Assistant, Meta: pool.Metadata{Model: "m-1"}, Content: []pool.Part{{Type: pool.ThinkingPart, Text: "thinking of boats"}, {Type: pool.TextPart, Text: "See the file"}},
		Calls: []pool.Call{{ID: "c", Tool: "grep", Arguments: []byte(`{"pattern":"needle"}`)}}})
	b.Append(&pool.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "c", Tool: "grep", Text: "a needle in the hay"}})
	b.Label("travel")
	_, err = b.Commit(s.T.Context())
	s.Must(err)
	fork := c.Begin("main")
	fork.Fork("side", chatctx.ForkOptions{At: "@2", Stay: true})
	_, err = fork.Commit(s.T.Context())
	s.Must(err)
	_, err = c.Append(s.T.Context(), "side", pool.NewText(pool.User, "Zurich by boat, and lost words"), pool.NewText(pool.Assistant, "rewound words"))
	s.Must(err)
	rewind := c.Begin("side")
	rewind.Rewind("@-2")
	_, err = rewind.Commit(s.T.Context())
	s.Must(err)
	other, err := s.Store.New(s.T.Context(), record.NewContext{Title: "Boats", Messages: []*pool.Message{pool.NewText(pool.User, "The boat leaves, the boat arrives, a train waits")}})
	s.Must(err)
	gone, err := s.Store.New(s.T.Context(), record.NewContext{Title: "Old trains", Messages: []*pool.Message{pool.NewText(pool.User, "an old train")}})
	s.Must(err)
	_, err = s.Store.Trash(s.T.Context(), gone.ID.String())
	s.Must(err)
	_, err = s.Store.Use(s.T.Context(), other.ID.String())
	return nil, err
}}

// searches are asked of the texts, before and after they are indexed.
var searches = []record.SearchOptions{{Text: "train"}, {Text: "train leaves"}, {Text: `"night train"`}, {Text: `"train night"`}, {Text: "tra*"}, {Text: "trai", Beginnings: true}, {Text: "zurich"}, {Text: "Zürich"}, {Text: "TRAIN"},
	{Text: "http", Parts: true}, {Text: "1.2.3"}, {Text: "needle"}, {Text: "needle", Tool: "grep"}, {Text: "train", Tool: "grep"}, {Text: "boats"}, {Text: "train", Role: pool.User}, {Text: "see", Model: "m-1"}, {Text: "see", Model: "m-2"},
	{Text: "train", Trash: true}, {Text: "lost"}, {Text: "lost", Unheld: true}, {Text: "train", Best: true}, {Text: "boat train", Any: true}, {Text: "boat", Best: true}, {Text: "train", Limit: 2}, {Text: "train", First: true},
	{Text: "train", Labels: []string{"travel"}}, {Text: "train", Context: "Boats"}, {Text: "train", Until: 1}, {Text: "train", Since: 1}, {Regexp: "tr[a-z]+n waits"}, {Regexp: "("}, {Text: ""}, {Text: `"`}, {Text: "nothing"}, {Text: "train nothing"}}

func search(o record.SearchOptions) storetest.Step {
	return storetest.Step{What: fmt.Sprintf("%+v", o), Do: func(s *storetest.Scene) (any, error) {
		var hits []string
		for hit, err := range find.Search(s.T.Context(), base.Of(s.Store), o) {
			if err != nil {
				return nil, err
			}
			id := pool.ID{}
			if hit.Message != nil {
				id = hit.Message.ID
			}
			hits = append(hits, fmt.Sprintf("%s of %q %s %v %s: %s [%s] %.2f %v", hit.What, hit.Title, id, hit.Branches, hit.Field, hit.Snippet, hit.Snippet[hit.Match.From:hit.Match.To], hit.Score, hit.Trashed))
		}
		return hits, nil
	}}
}

func TestSearches(t *testing.T) {
	index := storetest.Step{What: "index", Do: func(s *storetest.Scene) (any, error) {
		s.Must(find.Index(s.T.Context(), base.Of(s.Store), nil))
		whole, waiting, err := find.Indexed(s.T.Context(), base.Of(s.Store))
		return []any{whole, waiting}, err
	}}
	more := storetest.Batch("more", "main", func(b *chatctx.Batch) { b.Append(pool.NewText(pool.User, "another train, not indexed")) })
	reindex := storetest.Step{What: "reindex", Do: func(s *storetest.Scene) (any, error) { return nil, find.Reindex(s.T.Context(), base.Of(s.Store), nil) }}
	steps := []storetest.Step{texts}
	for _, before := range []storetest.Step{{What: "nothing", Do: func(*storetest.Scene) (any, error) { return nil, nil }}, index, more, index, reindex} {
		steps = append(steps, before)
		for _, o := range searches {
			steps = append(steps, search(o))
		}
	}
	storetest.Tell(t, "testdata/searches.txt", *update, func() chatctx.Options { return chatctx.Options{} }, []storetest.Story{{What: "searches", Steps: steps}})
}
