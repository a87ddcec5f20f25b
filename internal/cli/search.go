package cli

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/pool"
)

func searchCommands() []*command {
	return []*command{
		{name: "search", does: "find words in titles, messages and system prompts, in all conversations and on all branches", scope: onStore, run: in(doSearch), paged: true,
			more: `A message must have all of the words; "words in quotes" must be next to each other, wor* is a beginning. Upper and lower case are the same, and accents may be left out: messages that have them as typed come first.
If no whole word matches, search finds words with that beginning, and if there are none, parts of identifiers with it (http of parseHTTPRequest). It reads messages that are not in the index yet, so it misses none.`,
			json:    "what (message | title | prompt), context, title, trashed, message, role, model, created_at, field, snippet, match[from, to], branches[{branch, position}], score; a line each; with --reindex and no TEXT: messages",
			example: "chatctx search '\"night train\" lisb*' --role user --since 90d"},
	}
}

type searchIn struct {
	Text    []string  `arg:"[TEXT…]"`
	Regexp  bool      `flag:"regexp" doc:"TEXT is a regular expression (RE2); it reads everything"`
	Context string    `flag:"context" doc:"only in the conversation {CTX}"`
	Label   []string  `flag:"label" doc:"only conversations with the {LABEL}; may be given again"`
	Folder  string    `flag:"folder" doc:"only conversations that were held in the folder {DIR}"`
	Role    pool.Role `flag:"role" doc:"only messages of a {ROLE}: system, user, assistant or tool"`
	Model   string    `flag:"model" doc:"only messages that the {MODEL} wrote"`
	Tool    string    `flag:"tool" doc:"only calls of the tool {NAME}, and its results"`
	Since   instant   `flag:"since" doc:"only what came or changed since {WHEN}: 2025-01-31, 2025-01-31T10:00:00Z, 12h, 7d"`
	Until   instant   `flag:"until" doc:"only what came or last changed before {WHEN}: 2025-01-31, 2025-01-31T10:00:00Z, 12h, 7d"`
	Trash   bool      `flag:"trash" doc:"in the trash too"`
	Unheld  bool      `flag:"unreferenced" doc:"also messages that no branch holds, as after a rewind"`
	Old     bool      `flag:"unheld,hidden" doc:"the old name of --unreferenced"`
	Any     bool      `flag:"any" doc:"one of the words is enough, as for a question: the best passages first"`
	Best    bool      `flag:"best" doc:"the best matches first; else the newest"`
	Most    int       `flag:"n" default:"20" doc:"at most {N}; 0: all"`
	Reindex bool      `flag:"reindex" doc:"rebuild the index"`
}

// narrowed returns the flags that leave out what would be found.
func (in *searchIn) narrowed() (names []string) {
	for _, f := range []struct {
		name  string
		given bool
	}{{"context", in.Context != ""}, {"label", len(in.Label) > 0}, {"folder", in.Folder != ""}, {"role", in.Role != ""}, {"model", in.Model != ""}, {"tool", in.Tool != ""}, {"since", in.Since != 0},
		{"until", in.Until != 0}} {
		if f.given {
			names = append(names, "--"+f.name)
		}
	}
	return names
}

func doSearch(r *run, in *searchIn) error {
	r.common.Context = cmp.Or(in.Context, r.common.Context) // for the lines that it proposes
	o, err := in.options()
	if err != nil {
		return err
	}
	if in.Reindex {
		if err := reindex(r, o.Text+o.Regexp == ""); err != nil || o.Text+o.Regexp == "" {
			return err
		}
	} else if err := r.openIndexed(); err != nil {
		return err
	}
	n, err := r.printHits(o)
	for _, wider := range []struct {
		set  *bool
		note string
	}{{&o.Beginnings, "beginnings of words"}, {&o.Parts, "beginnings of parts of words"}} {
		if n > 0 || err != nil || r.stopped() || o.Text == "" || strings.Contains(o.Text, "*") {
			break
		}
		*wider.set = true // parse finds parseHTTPRequest, and then http does
		if n, err = r.printHits(o); n > 0 && err == nil {
			r.note("no whole word matches: these are %s\n  %s finds parts of words too", wider.note, r.partsOfWords(o))
		}
	}
	switch {
	case err != nil || r.stopped():
		return err
	case n == 0:
		r.note("nothing found%s", r.widen(in, o))
	case n == o.Limit:
		r.note("there may be more: -n 0 shows all")
	}
	return nil
}

// printHits prints the hits, and returns how many there are.
func (r *run) printHits(o record.SearchOptions) (n int, err error) {
	for h, err := range r.st.Search(r.ctx, o) {
		if err != nil {
			return n, err
		}
		n++
		if err := r.emit(hitToJSON(h), func() { r.printHit(h) }); err != nil || r.stopped() {
			return n, err
		}
	}
	return n, nil
}

// partsOfWords returns the command that looks for parts of words.
func (r *run) partsOfWords(o record.SearchOptions) string {
	return r.again("search --regexp " + quote("(?i)"+regexp.QuoteMeta(strings.Trim(o.Text, `"*`))))
}

// widen says how to find more.
func (r *run) widen(in *searchIn, o record.SearchOptions) string {
	var more []string
	if narrow := in.narrowed(); len(narrow) > 0 {
		more = append(more, "leave out "+strings.Join(narrow, ", "))
	}
	if o.Text != "" {
		more = append(more, "parts of words: "+r.partsOfWords(o))
	}
	if !o.Trash || !o.Unheld {
		more = append(more, "--trash looks into the trash, --unreferenced at what no branch holds any more")
	}
	if len(more) == 0 {
		return ""
	}
	return "\n  " + strings.Join(more, "\n  ")
}

func (in *searchIn) options() (record.SearchOptions, error) {
	o := record.SearchOptions{Context: in.Context, Labels: in.Label, Folders: operation.FolderNames(in.Folder), Any: in.Any, Role: in.Role, Model: in.Model, Tool: in.Tool,
		Since: pool.Time(in.Since), Until: pool.Time(in.Until), Trash: in.Trash, Unheld: in.Unheld || in.Old, Best: in.Best, Limit: in.Most}
	text := strings.Join(in.Text, " ")
	if in.Regexp {
		o.Regexp = text
	} else {
		o.Text = text
	}
	switch {
	case strings.TrimSpace(text) == "" && !in.Reindex:
		return o, &usageError{"search needs the TEXT to look for", "chatctx search " + `'"night train" lisb*'`}
	case o.Limit < 0:
		return o, usagef("search -n takes a number of 0 or more")
	case o.Role != "" && o.Role != pool.System && o.Role != pool.User && o.Role != pool.Assistant && o.Role != pool.ToolRole:
		return o, &usageError{fmt.Sprintf("no role %q", o.Role), "a message is from system, user, assistant or tool"}
	case (o.Best || o.Any) && o.Regexp != "":
		return o, usagef("search --best and --any rank words, and take no expression")
	}
	return o, nil
}

// openIndexed opens the store. If much has come in since, it is put into a file's index first; a server's index is left to those who write there.
func (r *run) openIndexed() error {
	st, err := r.caching()
	if err != nil {
		return err
	}
	index, err := st.Maintenance().IndexState(r.ctx)
	switch {
	case err != nil:
		return err
	case !index.Whole:
		r.note("there is no index yet, so everything is read; make one: %s", r.again("search --reindex"))
	case index.Waiting > 2000 && r.onServer() == nil:
		r.note("putting new messages into the index …")
		if err = st.Maintenance().Index(r.ctx, nil); errors.Is(err, chatctx.ErrReadOnly) {
			return nil
		}
	}
	return err
}

func reindex(r *run, alone bool) error {
	st, err := r.writer()
	if err != nil {
		return err
	}
	err = find.Reindex(r.ctx, base.Of(st), func(done int) { r.note("%d …", done) })
	if err != nil || !alone {
		return err
	}
	stats, err := st.Maintenance().Stats(r.ctx)
	if err != nil {
		return err
	}
	return r.emit(map[string]int{"messages": stats.Messages}, func() {
		r.printf("the index has all of %s\n", count(stats.Messages, "message"))
	})
}

// printHit prints a hit: its surroundings, where it is, and the command that goes there.
func (r *run) printHit(h *record.Hit) {
	where := titled(h.Title, h.Context)
	if h.Trashed {
		where += " (in the trash)"
	}
	head := h.What + " of "
	if m := h.Message; m != nil {
		head = r.paint(yellow, short(m.ID)) + " " + string(m.Role)
		if h.Field != "text" {
			head += ", " + h.Field
		}
		head += "  " + moment(m.Created) + "  "
	}
	var on []string
	for i, b := range h.Branches {
		if i == 4 {
			on = append(on, fmt.Sprintf("%d more", len(h.Branches)-i))
			break
		}
		name := clean(b.Name)
		if b.Position > 0 {
			name += fmt.Sprintf(" #%d", b.Position)
		}
		on = append(on, name)
	}
	if len(on) > 0 {
		where += ", " + strings.Join(on, ", ")
	}
	r.row(2, "%s%s", head, where)
	r.row(2, "  %s%s%s", clean(h.Snippet[:h.Match.From]), r.paint(bold, clean(h.Snippet[h.Match.From:h.Match.To])), clean(h.Snippet[h.Match.To:]))
	r.row(4, "  %s", r.paint(dim, r.again(goTo(h))))
	r.printf("\n")
}

// goTo returns the command that shows a hit.
func goTo(h *record.Hit) string {
	line := "show"
	if h.Message != nil {
		line += " " + short(h.Message.ID)
	}
	line += " --context " + short(h.Context)
	if len(h.Branches) > 0 {
		line += " --branch " + quote(h.Branches[0].Name)
	}
	return line
}
