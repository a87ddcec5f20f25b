package operation

import (
	"time"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/pool"
)

func init() { Register(Group{Heading: "Finding", Of: findOperations}) }

func findOperations() []*Operation {
	return []*Operation{
		Define("search", "GET /search", Read, "find words in titles, messages and prompts", search),
	}
}

type searchParams struct {
	Text    string     `json:"text,omitempty" doc:"words, \"phrases\" and beginnings*; all of them must occur"`
	Regexp  string     `json:"regexp,omitempty" doc:"a regular expression, instead of text; the search reads everything"`
	Context string     `json:"context,omitempty" doc:"only in this conversation"`
	Folder  string     `json:"folder,omitempty" doc:"only in conversations that were held in this folder"`
	Role    string     `json:"role,omitempty" doc:"only messages of this role"`
	Model   string     `json:"model,omitempty" doc:"only messages of this model"`
	Tool    string     `json:"tool,omitempty" doc:"only calls of this tool, and its results"`
	Since   *time.Time `json:"since,omitempty" doc:"only texts created then or later"`
	Until   *time.Time `json:"until,omitempty" doc:"only texts created before then"`
	Trash   bool       `json:"trash,omitempty" doc:"search the trash too"`
	Unheld  bool       `json:"unheld,omitempty" doc:"also find messages that no branch holds"`
	Any     bool       `json:"any,omitempty" doc:"one of the words is enough: messages with the most and rarest of them in one passage come first"`
	First   bool       `json:"first,omitempty" doc:"name only one branch for each message: main, if it was first put there. This is the fastest"`
	Best    bool       `json:"best,omitempty" doc:"sort by how well hits fit; by default the newest come first"`
	Limit   int        `json:"limit,omitempty" doc:"the most hits, up to 1000; 0 means 100"`
}

func search(r *Request, in *searchParams) (List[contract.Hit], error) {
	limit, err := limitOf(in.Limit)
	if err != nil {
		return List[contract.Hit]{}, err
	}
	o := record.SearchOptions{Text: in.Text, Regexp: in.Regexp, Context: in.Context, Folders: FolderNames(in.Folder), Any: in.Any, Role: pool.Role(in.Role), Model: in.Model, Tool: in.Tool,
		Since: timeOf(in.Since), Until: timeOf(in.Until), Trash: in.Trash, Unheld: in.Unheld, First: in.First, Best: in.Best, Limit: limit}
	var items []contract.Hit
	for h, err := range r.Store.Search(r.Ctx, o) {
		if err != nil {
			return List[contract.Hit]{}, err
		}
		items = append(items, contract.HitOf(h))
	}
	return ListOf(items), nil
}
