package standard_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/enhancer/standard"
	"github.com/chatctx/chatctx/pool"
)

// drawer is a program's own store for artifacts.
type drawer map[string]enhancer.Artifact

func (d drawer) Keep(_ context.Context, a enhancer.Artifact) error {
	d[a.Key] = a
	return nil
}

func (d drawer) List(context.Context) (all []enhancer.Artifact, err error) {
	for _, a := range d {
		all = append(all, a)
	}
	return all, nil
}

func (d drawer) Find(_ context.Context, key string) (found []enhancer.Artifact, err error) {
	for k, a := range d {
		if strings.HasPrefix(k, key) {
			found = append(found, a)
		}
	}
	return found, nil
}

// A program's own rules, store and step, without a change in this package.
func ExampleFit() {
	ctx := context.Background()
	store, err := chatctx.OpenMemory(chatctx.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	c, err := store.New(ctx, record.NewContext{})
	if err != nil {
		log.Fatal(err)
	}
	var all []*chatctx.Message
	use := func(id, tool, output string) {
		all = append(all, &chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: id, Tool: tool, Status: pool.Approved, Execution: pool.Done}}},
			&chatctx.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: id, Text: output}})
	}
	all = append(all, pool.NewText(pool.User, "Is the bridge open?"))
	use("1", "tides", strings.Repeat("high 06:12, low 12:31\n", 100)+"now: rising")
	use("2", "camera", strings.Repeat("a boat, a gull, no lorry\n", 800))
	all = append(all, pool.NewText(pool.Assistant, "It is open. "+strings.Repeat("The tide was looked up. ", 40)), pool.NewText(pool.User, "And tomorrow?"))
	if _, err := c.Append(ctx, "", all...); err != nil {
		log.Fatal(err)
	}

	o, err := standard.Options(nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	o.Model, o.Budget, o.KeepBlocks, o.PruneThreshold = "gpt-4o", 250, 1, 1_000_000
	o.Rules = []enhancer.Rule{{Name: "last line", Tool: "tides", Apply: func(text string) string { return text[strings.LastIndexByte(text, '\n')+1:] }}}
	o.TextRules = []enhancer.Rule{{Name: "first sentence", Apply: func(text string) string {
		first, _, _ := strings.Cut(text, ". ")
		return strings.TrimSuffix(first, ".") + "."
	}}}
	kept := drawer{}
	o.Artifacts = kept
	size := enhancer.Func("size", func(_ context.Context, d *chatctx.Draft) error {
		fmt.Println("before history:", len(d.Messages), "messages,", len(kept), "put aside")
		return nil
	})

	draft, err := c.Draft(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	report, err := standard.Fit(ctx, c, draft, o, nil, enhancer.Before("history", size))
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range report.Rules {
		fmt.Printf("%s: %d time, %d → %d tokens\n", r.Name, r.Times, r.Before, r.After)
	}
	fmt.Println(draft.Messages[2].Result.Text)
	fmt.Println(draft.Messages[5].Text())
	// Output:
	// before history: 7 messages, 1 put aside
	// last line: 1 time, 1207 → 7 tokens
	// put aside: 1 time, 8004 → 44 tokens
	// first sentence: 1 time, 249 → 8 tokens
	// now: rising
	// It is open.
}
