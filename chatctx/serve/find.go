package serve

import (
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/pool"
)

func findMethods() []*method {
	return []*method{
		define("search", "GET /search", Read, "find words in titles, messages and prompts", search),
	}
}

type searchParams struct {
	Text    string     `json:"text,omitempty" doc:"words, \"phrases\" and beginnings*"`
	Regexp  string     `json:"regexp,omitempty" doc:"a regular expression in place of text; it reads everything"`
	Context string     `json:"context,omitempty" doc:"only in this conversation"`
	Role    string     `json:"role,omitempty" doc:"only messages of this role"`
	Model   string     `json:"model,omitempty" doc:"only messages of this model"`
	Tool    string     `json:"tool,omitempty" doc:"only calls of this tool, and its results"`
	Since   *time.Time `json:"since,omitempty" doc:"only what was created then or later"`
	Until   *time.Time `json:"until,omitempty" doc:"only what was created before"`
	Trash   bool       `json:"trash,omitempty" doc:"in the trash too"`
	Unheld  bool       `json:"unheld,omitempty" doc:"messages too that no branch holds"`
	First   bool       `json:"first,omitempty" doc:"of the branches that hold a message name one, main where it was put there: that reads least"`
	Best    bool       `json:"best,omitempty" doc:"those first that fit best; else the newest"`
	Limit   int        `json:"limit,omitempty" doc:"at most so many; 0: 100"`
}

func search(r *request, in *searchParams) (list[contract.Hit], error) {
	limit, err := limitOf(in.Limit)
	if err != nil {
		return list[contract.Hit]{}, err
	}
	o := chatctx.SearchOptions{Text: in.Text, Regexp: in.Regexp, Context: in.Context, Role: pool.Role(in.Role), Model: in.Model, Tool: in.Tool,
		Since: timeOf(in.Since), Until: timeOf(in.Until), Trash: in.Trash, Unheld: in.Unheld, First: in.First, Best: in.Best, Limit: limit}
	var items []contract.Hit
	for h, err := range r.store.Search(r.ctx, o) {
		if err != nil {
			return list[contract.Hit]{}, err
		}
		items = append(items, contract.HitOf(h))
	}
	return listOf(items), nil
}
