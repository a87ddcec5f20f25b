package operation

import (
	"fmt"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/pool"
)

func init() { Register(Group{Heading: "Finding", Of: findOperations}) }

func findOperations() []*Operation {
	return []*Operation{
		Define("search", "GET /search", Read, "find words in titles, messages and system prompts, in all conversations and on all branches", search).Caching().
			As("search", "chatctx search '\"night train\" lisb*' --role user --since 90d").With(searchHelp),
	}
}

const searchHelp = `A message must have all of the words; "words in quotes" must be next to each other, wor* is a beginning. Upper and lower case are the same, and accents may be left out: messages that have them as typed come first.
If no whole word matches, search finds words with that beginning, and if there are none, parts of identifiers with it (http of parseHTTPRequest). It reads messages that are not in the index yet, so it misses none. On the command line -n 0 shows all.`

// Searching says what to look for, and where. The command line takes its words one by one.
type Searching struct {
	Words    []string   `json:"-" arg:"[TEXT…]"`
	Text     string     `json:"text,omitempty" doc:"words, \"phrases\" and beginnings*; all of them must occur"`
	Regexp   string     `json:"regexp,omitempty" doc:"a regular expression, instead of text; the search reads everything"`
	AsRegexp bool       `json:"-" flag:"regexp" doc:"TEXT is a regular expression (RE2); it reads everything"`
	Context  string     `json:"context,omitempty" flag:"context" doc:"only in the conversation {CTX}"`
	Labels   []string   `json:"labels,omitempty" flag:"label" doc:"only conversations with the {LABEL}; may be given again"`
	Folder   string     `json:"folder,omitempty" flag:"folder" doc:"only conversations that were held in the folder {DIR}"`
	Role     pool.Role  `json:"role,omitempty" flag:"role" doc:"only messages of a {ROLE}: system, user, assistant or tool"`
	Model    string     `json:"model,omitempty" flag:"written-by" old:"model m" doc:"the {MODEL} that wrote the message"`
	Tool     string     `json:"tool,omitempty" flag:"tool" doc:"only calls of the tool {NAME}, and its results"`
	Since    *time.Time `json:"since,omitempty" flag:"since" doc:"only what came or changed since {WHEN}"`
	Until    *time.Time `json:"until,omitempty" flag:"until" doc:"only what came or last changed before {WHEN}"`
	Trash    bool       `json:"trash,omitempty" flag:"with-trash" old:"trash" doc:"in the trash too"`
	Unheld   bool       `json:"unheld,omitempty" flag:"unreferenced" old:"unheld" doc:"also messages that no branch holds, as after a rewind"`
	Any      bool       `json:"any,omitempty" flag:"any" doc:"one of the words is enough, as for a question: the best passages first"`
	First    bool       `json:"first,omitempty" doc:"name only one branch for each message: main, if it was first put there. This is the fastest"`
	Best     bool       `json:"best,omitempty" flag:"best" doc:"the best matches first; else the newest"`
	Limit    int        `json:"limit,omitempty" doc:"the most hits, up to 1000; 0 means 100"`
	Most     int        `json:"-" flag:"n" default:"20" doc:"at most {N}"`
	Reindex  bool       `json:"-" flag:"reindex" doc:"rebuild the index"`
}

// Writes reports whether the index is made anew.
func (in *Searching) Writes() bool { return in.Reindex }

// Wanted returns what is looked for.
func (in *Searching) Wanted() string { return in.Text + in.Regexp }

// Hits are what was found. The command line takes them as they come, and widens a search that finds nothing.
type Hits struct {
	List[contract.Hit]
	*Hunt
	Indexed []Indexed `json:"-" when:"reindex"`
}

// Indexed is an index that was made anew, without a search.
type Indexed struct {
	Messages int `json:"messages"`
}

// Hunt is how a search went.
type Hunt struct {
	Found  int    `json:"-"`
	Wider  string `json:"-"` // what was found in place of whole words
	r      *Request
	wanted record.SearchOptions
}

func search(r *Request, in *Searching) (out Hits, err error) {
	limit := in.Most
	if r.Page > 0 {
		if limit, err = limitOf(in.Limit); err != nil {
			return out, err
		}
	}
	o := record.SearchOptions{Text: in.Text, Regexp: in.Regexp, Context: in.Context, Labels: in.Labels, Folders: FolderNames(in.Folder), Any: in.Any, Role: in.Role, Model: in.Model, Tool: in.Tool,
		Since: timeOf(in.Since), Until: timeOf(in.Until), Trash: in.Trash, Unheld: in.Unheld, First: in.First, Best: in.Best, Limit: limit}
	if r.Page == 0 {
		return r.hunt(in, o)
	}
	var items []contract.Hit
	for h, err := range r.Store.Search(r.Ctx, o) {
		if err != nil {
			return out, err
		}
		items = append(items, contract.HitOf(h))
	}
	return Hits{List: ListOf(items)}, nil
}

// hunt prepares a search whose hits are taken as they come, after it made the index anew if that is wanted.
func (r *Request) hunt(in *Searching, o record.SearchOptions) (out Hits, err error) {
	out.Hunt = &Hunt{r: r, wanted: o}
	if !in.Reindex {
		return out, nil
	}
	if err := find.Reindex(r.Ctx, base.Of(r.Store), func(done int) { r.progress(fmt.Sprintf("%d …", done)) }); err != nil || in.Wanted() != "" {
		return out, err
	}
	stats, err := r.Store.Maintenance().Stats(r.Ctx)
	if err == nil {
		out.Indexed = []Indexed{{stats.Messages}}
	}
	return out, err
}

// Each calls fn with every hit. If no whole word matches, it takes beginnings of words, then of parts of words.
func (h Hits) Each(fn func(any) error) error {
	if h.Hunt == nil {
		return h.List.Each(fn)
	}
	err := h.once(fn)
	for _, wider := range []struct {
		set  *bool
		name string
	}{{&h.wanted.Beginnings, "beginnings of words"}, {&h.wanted.Parts, "beginnings of parts of words"}} {
		if h.Found > 0 || err != nil || h.wanted.Text == "" || strings.Contains(h.wanted.Text, "*") {
			break
		}
		*wider.set = true // parse finds parseHTTPRequest, and then http does
		if err = h.once(fn); h.Found > 0 && err == nil {
			h.Wider = wider.name
		}
	}
	return err
}

func (h *Hunt) once(fn func(any) error) error {
	for hit, err := range h.r.Store.Search(h.r.Ctx, h.wanted) {
		if err == nil {
			h.Found++
			err = fn(contract.HitOf(hit))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
