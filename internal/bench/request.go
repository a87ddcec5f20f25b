package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/chatctx/chatctx/adapter"
	_ "github.com/chatctx/chatctx/adapter/all"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/tokens"
)

// withModel creates a store with a context of n messages and a model set.
func withModel(file string, n int, model string) (*chatctx.Store, *chatctx.ChatContext) {
	s, c := filled(file, n)
	b := c.Begin("")
	b.SetSettings(map[string]json.RawMessage{"model": value(json.Marshal(model))})
	value(b.Commit(context.Background()))
	return s, c
}

// bodyOf returns the body that a provider's adapter makes of a draft, bytesOf its bytes.
func bodyOf(provider string, d *chatctx.Draft) adapter.Body {
	return value(value(adapter.ServiceOf(provider)).Adapter.Adapt(d))
}

func bytesOf(provider string, d *chatctx.Draft) []byte {
	return value(bodyOf(provider, d).MarshalJSON())
}

func benchBody(r *run) []row {
	ctx := context.Background()
	n := r.n(10_000)
	var rows []row
	for provider, model := range map[string]string{"openai": "gpt-4o", "openai-responses": "gpt-4o", "anthropic": "claude-sonnet-4-5", "gemini": "gemini-2.5-pro", "ollama": "llama3.2"} {
		s, c := withModel(in(r.dir, provider), n, model)
		d := value(c.Draft(ctx, ""))
		body := bytesOf(provider, d)
		var same any
		must(json.Unmarshal(body, &same))
		adapted := bodyOf(provider, d)
		median, low, high, took := ratio(9, func() { bytesOf(provider, d) }, func() { value(json.Marshal(adapted)) })
		rows = append(rows, row{fmt.Sprintf("body for %s of %d messages: to json.Marshal of it", provider, n), fmt.Sprintf("%s, %s", spread(median, low, high), took), "at most 2", median <= 2})
		must(s.Close())
	}
	return rows
}

func benchTokens(r *run) []row {
	ctx := context.Background()
	n := r.n(10_000)
	s, c := withModel(in(r.dir, "tokens"), n, "gpt-4o")
	defer s.Close()
	count := func() {
		d := value(c.Draft(ctx, ""))
		must(tokens.NewCounter("gpt-4o", nil, c).Fill(ctx, d))
	}
	count()
	load := func() { value(value(c.Snapshot(ctx, "")).Page(ctx, 1, 0)) }
	median, low, high, took := ratio(9, count, load)
	rows := []row{{fmt.Sprintf("count tokens of %d messages a second time: to loading", n), fmt.Sprintf("%s, %s", spread(median, low, high), took), "under 2", median < 2}}
	counter := tokens.NewCounter("gpt-4o", nil, nil)
	solid := strings.Repeat("abcdefghij", 100_000)
	counter.Text("load the vocabulary")
	alone := timed(func() { counter.Text(solid) })
	return append(rows, row{"tokens of 1 MB without a space", alone.Round(time.Millisecond).String(), "under 200 ms", alone < 200*time.Millisecond})
}
