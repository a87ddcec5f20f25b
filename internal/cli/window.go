package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

func windowCommands() []*command {
	return []*command{
		{name: "tokens", does: "show how large the branch is for its model, message by message, and its limit", scope: onBranch, run: in(doTokens), paged: true,
			more: "It counts the next request, as send would make it, without the messages that earlier steps left out. If a compaction is due, the count is an upper bound, marked ≤. Counts are exact for models whose encoding is known, else an approximation that reported figures correct; the output says which. With --provider it asks the provider's own counter, if there is one, about the request that send would send.",
			json: "total_tokens, " + contract.WindowFields + ", overhead, summary, encoding, model, provider_tokens, messages[{id, role, tokens, reported_tokens, preview}]",
			example: `chatctx tokens
chatctx tokens --model claude-sonnet-4-5
chatctx tokens --encoding o200k_base
chatctx tokens --provider anthropic --json`},
		{name: "compact", does: "put a summary in place of the older messages, and begin a new session", scope: onBranch, run: in(doCompact),
			more: "The history stays, and undo brings the old request back. A range A..B summarises only the messages after A up to and including B; without B all but the newest message. The summary is TEXT, else written by the model that the settings compact.model and compact.provider name (else the branch's), else, or with --digest, made by rules.",
			json: "operation, context, branch, session, start, by, summary, messages, before, after, system, summary_tokens, kept, tools, calls, budget, summaries[{from, to, by, merged, cut}], note; with --dry-run: dry_run, context, branch, start, messages[{id, role, position, tokens, preview}], gone, kept, pinned, before, after, at_most, by, summary",
			example: `chatctx compact --dry-run
chatctx compact --keep-tokens 2000
chatctx compact --from u2 --to a4
chatctx compact u1..a4
chatctx compact --summary "We fly on Friday; the hotel is booked."`},
		{name: "prune", does: "shorten old tool results to one line each, from now on", scope: onBranch, run: in(doPrune),
			more: "Results that the model has not read yet stay. The store keeps them all; undo brings them back into the request.",
			json: "operation, context, branch, position, results, before, after, request_before, request_after, budget", example: "chatctx prune"},
		{name: "pin"}, {name: "unpin"}, {name: "exclude"}, {name: "include"},
		{name: "sessions", does: "list the branch's sessions with their summaries and figures", scope: onBranch, run: in(doSessions), paged: true,
			more: "--search asks the embedding server that the settings embedding.model, embedding.base_url and embedding.key_env name. It has to speak OpenAI's protocol.",
			json: "session, id, current, start, end, messages, tokens, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, created_at, summary, pruned_to, kind, provider, model, score; a line each", example: "chatctx sessions"},
		{name: "resume", does: "go back to a session: whole if it fits, else with its summary", scope: onBranch, run: in(doResume),
			more: "SESSION is a number as sessions shows it, or an id. The messages of later sessions stay on the branch; with a budget, a digest of their summaries, and of what has none, stands for them.",
			json: "operation, context, branch, session, of, whole, tokens", example: "chatctx resume 1"},
		{name: "artifact", does: "large tool outputs and attachments, which can be put aside", scope: onBranch, subs: []*command{
			{name: "ls", does: "list the large tool outputs and the attachments of the branch", scope: onBranch, do: doArtifacts, paged: true,
				json: "key, message, kind, tool, media_type, name, size; a line each", example: "chatctx artifact ls"},
			{name: "show", does: "print an output or attachment by the KEY of its pointer", scope: onBranch, run: in(doArtifact), paged: true,
				more: "KEY is the key in [EXTERNALIZED: KEY | …]; its first 4 digits or more are enough. Binary content goes to a file or a pipe, not to a terminal.",
				json: "key, message, kind, tool, media_type, name, size, text | data (base64)", example: "chatctx artifact show 2cf24dba5fb0a30e"},
		}},
	}
}

// windowOptions returns the settings of the window in force on a branch, with the model and provider of the command line.
func (r *run) windowOptions(c *chatctx.ChatContext, branchName string) (window.Options, error) {
	return r.turn(c, branchName).Options(r.ctx)
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

// tokensJSON is a branch's size.
type tokensJSON struct {
	Total int `json:"total_tokens"`
	contract.Window
	Overhead int         `json:"overhead"` // prompts, tools and the conversation as a whole
	Summary  int         `json:"summary"`
	Encoding string      `json:"encoding"`
	Model    string      `json:"model"`
	Provider *int64      `json:"provider_tokens,omitempty"`
	Messages []tokenLine `json:"messages"`
}

// changing returns what opens the store to change it, in a dry run as caching does.
func (r *run) changing(in dryRunFlag) func() (*chatctx.Store, error) {
	if in.DryRun {
		return r.caching
	}
	return r.writer
}

// talkOn opens the store with open, and returns the current context and branch.
func (r *run) talkOn(open func() (*chatctx.Store, error)) (*chatctx.ChatContext, string, error) {
	if _, err := open(); err != nil {
		return nil, "", err
	}
	return r.talk()
}

type tokenLine struct {
	ID       chatctx.ID `json:"id"`
	Role     pool.Role  `json:"role"`
	Tokens   int        `json:"tokens"`
	Reported *int64     `json:"reported_tokens,omitempty"`
	Preview  string     `json:"preview"`
}

type tokensIn struct {
	whomFlags
	Encoding string `flag:"encoding" doc:"count by this {ENCODING}: o200k_base, cl100k_base, p50k_base, p50k_edit, r50k_base or gpt2; else by the setting encoding, else by the model's"`
}

func doTokens(r *run, in *tokensIn) error {
	c, name, err := r.talkOn(r.caching)
	if err != nil {
		return err
	}
	t := r.turn(c, name)
	if in.Encoding != "" {
		t.Settings["encoding"] = wire.String(in.Encoding)
	}
	req, over, err := r.foresee(t)
	if err != nil {
		return err
	}
	v := tokensOf(req)
	if in.Provider != "" {
		n, err := t.Count(r.ctx)
		switch {
		case errors.Is(err, wire.ErrNoCount):
			r.note("%s has no counter of its own", clean(in.Provider))
		case err != nil:
			return talkHint(err)
		default:
			v.Provider = &n
		}
	}
	return r.emit(v, func() { r.printTokens(&v, req.Forecast, over) })
}

// tokensOf returns the figures of a request, message by message.
func tokensOf(req *turn.Request) tokensJSON {
	d := req.Draft
	of, fixed := req.Window.Shares(d)
	v := tokensJSON{Total: req.Forecast.Tokens, Window: contract.WindowOf(req.Forecast), Overhead: fixed, Encoding: string(req.Window.Counter.Model.Encoding), Model: req.Options.Model, Messages: []tokenLine{}}
	line := func(m *chatctx.DraftMessage) {
		l := tokenLine{ID: m.ID, Role: m.Role, Tokens: of[m.ID], Preview: tokens.Preview(m.Message, 60)}
		if m.Role == pool.Assistant {
			l.Reported = m.Meta.OutputTokens
		}
		v.Messages = append(v.Messages, l)
	}
	if d.Summary != nil {
		v.Summary = of[d.Summary.ID]
		line(d.Summary)
	}
	for _, m := range d.Messages {
		line(m)
	}
	return v
}

func (r *run) printTokens(v *tokensJSON, f *window.Forecast, over error) {
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
	if over != nil {
		r.note("%s", clean(over.Error()))
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
