package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/internal/window"
)

func windowCommands() []*command {
	return []*command{{name: "tokens"}, {name: "compact"}, {name: "prune"}, {name: "pin"}, {name: "unpin"}, {name: "exclude"}, {name: "include"}, {name: "sessions"}, {name: "resume"},
		{name: "artifact", does: "large tool outputs and attachments, which can be put aside", scope: onBranch, subs: []*command{{name: "ls"}, {name: "show"}}}}
}

func init() { lookGroups = append(lookGroups, sizeLooks) }

func sizeLooks() map[string]look {
	return map[string]look{"tokens.count": orFails(as((*run).printTokens), func(_ *run, _ *operation.BranchMeasuring, err error) error { return talkHint(err) })}
}

// caching opens the store to read it so that token counts made on the way are kept in its file. A store on a server, or a file that cannot be written, is
// opened to read only.
func (r *run) caching() (*chatctx.Store, error) {
	if path, err := r.storePath(); err == nil && isURL(path) {
		return r.reader()
	}
	st, err := r.writer()
	if errors.Is(err, chatctx.ErrReadOnly) || errors.Is(err, fs.ErrPermission) {
		return r.reader()
	}
	return st, err
}

// talkOn opens the store with open, and returns the current context and branch.
func (r *run) talkOn(open func() (*chatctx.Store, error)) (*chatctx.ChatContext, string, error) {
	if _, err := open(); err != nil {
		return nil, "", err
	}
	return r.talk()
}

func (r *run) printTokens(in *operation.BranchMeasuring, v operation.BranchSize) {
	f := window.Of(v.Next.Request).Forecast
	r.notInForce(v.Next.Ignored())
	if v.Uncounted {
		r.note("%s has no counter of its own", clean(in.Provider))
	}
	room := max(r.con.width-2-8-2-9-2-7-2, 10)
	for _, m := range v.Messages {
		r.printf("%s  %-9s %7d  %s\n", r.paint(yellow, short(m.ID)), m.Role, m.Tokens, cut(clean(m.Preview), room))
	}
	how := v.Exactness + ", " + v.Encoding
	if v.Exactness == tokens.Approximate {
		how += " stands in for the model's own encoding and may be 20 to 30 % off"
	}
	r.row(2, "prompts, tools and overhead %s, summary %s", window.Short(v.Overhead), window.Short(v.Summary))
	atMost := ""
	if f.Due {
		atMost = "≤ "
	}
	r.row(2, "%s%s tokens (%s)", atMost, group3(v.Total), how)
	if f.Due {
		r.row(2, "a compaction is due, and comes before the next request")
	}
	if f.Reported != nil {
		r.row(2, "%s", f.Reported)
	}
	if v.Provider != nil {
		r.row(2, "%s tokens by the provider's own count of the request", group3(int(*v.Provider)))
	}
	if v.Budget != nil {
		r.row(2, "%s %d %% of %s", r.bar(*v.Percent), *v.Percent, group3(*v.Budget))
	}
	if v.Next.Over != nil {
		r.note("%s", clean(v.Next.Over.Error()))
	}
}

// bar shows a share of a hundred.
func (r *run) bar(percent int) string {
	const width = 30
	full := min(width, max(0, percent*width/100))
	filled, empty, style := "█", "░", green
	if r.con.plain {
		filled, empty = "#", "."
	}
	switch {
	case percent > 100:
		style = red
	case percent > 80:
		style = yellow
	}
	return r.paint(style, strings.Repeat(filled, full)) + strings.Repeat(empty, width-full)
}

// group3 returns a number with separated thousands.
func group3(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
