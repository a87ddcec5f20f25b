package cli

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/pool"
)

func searchCommands() []*command { return []*command{{name: "search"}} }

func init() { lookGroups = append(lookGroups, searchLooks) }

func searchLooks() map[string]look {
	l := preparing((*run).readSearching, look{text: func(r *run, _, out any) {
		switch v := out.(type) {
		case contract.Hit:
			r.printHit(v.Of)
		case operation.Indexed:
			r.printf("the index has all of %s\n", count(v.Messages, "message"))
		}
	}})
	l.then = func(r *run, in, out any) error {
		r.afterSearch(in.(*operation.Searching), out.(operation.Hits))
		return nil
	}
	return map[string]look{"search": l}
}

// narrowed returns the flags that leave out what would be found.
func narrowed(in *operation.Searching) (names []string) {
	for _, f := range []struct {
		name  string
		given bool
	}{{"context", in.Context != ""}, {"label", len(in.Labels) > 0}, {"folder", in.Folder != ""}, {"role", in.Role != ""}, {"written-by", in.Model != ""}, {"tool", in.Tool != ""}, {"since", in.Since != nil},
		{"until", in.Until != nil}} {
		if f.given {
			names = append(names, "--"+f.name)
		}
	}
	return names
}

// readSearching puts the words together, refuses what cannot be looked for, and opens the store with an index that is not far behind.
func (r *run) readSearching(in *operation.Searching) error {
	r.common.Context = cmp.Or(in.Context, r.common.Context) // for the lines that it proposes
	text := strings.Join(in.Words, " ")
	if in.AsRegexp {
		in.Regexp = text
	} else {
		in.Text = text
	}
	switch {
	case strings.TrimSpace(text) == "" && !in.Reindex:
		return &usageError{"search needs the TEXT to look for", "chatctx search " + `'"night train" lisb*'`}
	case in.Most < 0:
		return usagef("search -n takes a number of 0 or more")
	case in.Role != "" && in.Role != pool.System && in.Role != pool.User && in.Role != pool.Assistant && in.Role != pool.ToolRole:
		return &usageError{fmt.Sprintf("no role %q", in.Role), "a message is from system, user, assistant or tool"}
	case (in.Best || in.Any) && in.AsRegexp:
		return usagef("search --best and --any rank words, and take no expression")
	case in.Reindex:
		return nil
	}
	return r.openIndexed()
}

// afterSearch says how more is found.
func (r *run) afterSearch(in *operation.Searching, out operation.Hits) {
	switch {
	case out.Indexed != nil || r.stopped():
	case out.Found == 0:
		r.note("nothing found%s", r.widen(in))
	case out.Wider != "":
		r.note("no whole word matches: these are %s\n  %s finds parts of words too", out.Wider, r.partsOfWords(in.Text))
		fallthrough
	default:
		if out.Found == in.Most {
			r.note("there may be more: -n 0 shows all")
		}
	}
}

// partsOfWords returns the command that looks for parts of words.
func (r *run) partsOfWords(text string) string {
	return r.again("search --regexp " + quote("(?i)"+regexp.QuoteMeta(strings.Trim(text, `"*`))))
}

// widen says how to find more.
func (r *run) widen(in *operation.Searching) string {
	var more []string
	if narrow := narrowed(in); len(narrow) > 0 {
		more = append(more, "leave out "+strings.Join(narrow, ", "))
	}
	if in.Text != "" {
		more = append(more, "parts of words: "+r.partsOfWords(in.Text))
	}
	if !in.Trash || !in.Unheld {
		more = append(more, "--with-trash looks into the trash, --unreferenced at what no branch holds any more")
	}
	if len(more) == 0 {
		return ""
	}
	return "\n  " + strings.Join(more, "\n  ")
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
