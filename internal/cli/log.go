package cli

import (
	"cmp"
	"fmt"
	"iter"
	"regexp"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// aroundMost is how many messages --around shows before and after without -n.
const aroundMost = 5

type logIn struct {
	Range    record.Ref `arg:"[A..B]"`
	Follow   bool       `flag:"follow,f" doc:"or -f: go on with what is added, until Ctrl-C"`
	Raw      bool       `flag:"verbatim" old:"raw" doc:"show the text unchanged, on a terminal too"`
	N        *int       `flag:"n" doc:"at most {N}"`
	Around   record.Ref `flag:"around" doc:"only {REF} and the messages around it"`
	Reverse  bool       `flag:"reverse" doc:"the newest first"`
	Since    instant    `flag:"since" doc:"only what came or changed since {WHEN}: 2025-01-31, 2025-01-31T10:00:00Z, 12h, 7d"`
	Role     pool.Role  `flag:"role" doc:"only messages of a {ROLE}: system, user, assistant or tool"`
	Grep     string     `flag:"grep" doc:"only messages in which the regular expression {PATTERN} matches, calls and results too"`
	Hidden   bool       `flag:"hidden" doc:"hidden messages too, in what is for reading: JSON always has them"`
	Thinking bool       `flag:"thinking" doc:"show the model's thinking too"`
	OneLine  bool       `flag:"oneline" doc:"a line each message: its short id, its role and its text, with tabs between"`
	Fields   string     `flag:"fields" doc:"a line each message with these {FIELDS}, tabs between: id, ref (a short id), position, turn, role, model, created, text"`
}

// doLog prints the branch's messages, or those that the flags select.
func doLog(r *run, in *logIn) error {
	l := &logPrinter{r: r, in: in, hidden: in.Hidden || r.json()}
	if err := l.filters(); err != nil {
		return err
	}
	r.asIs = in.Raw
	c, err := r.conversation()
	if err != nil {
		return err
	}
	if in.Follow {
		return l.follow(c)
	}
	_, err = l.begin(c)
	return err
}

// begin prints what the flags select of the branch as it is.
func (l *logPrinter) begin(c *chatctx.ChatContext) (*chatctx.Stretch, error) {
	r := l.r
	shown, err := c.Look(r.ctx, r.branchName(), l.ahead())
	if err != nil {
		return nil, err
	}
	part, err := l.stretch(shown)
	if err != nil {
		return nil, err
	}
	if l.in.Follow && (part.Snapshot != shown || part.To != part.Snapshot.Len()) {
		return nil, usagef("log -f follows the end of the branch: the range may have a beginning, A.., and no end")
	}
	if part.Snapshot != shown { // the range is on another branch
		if shown, err = c.Look(r.ctx, part.Snapshot.Info.Name, 0); err != nil {
			return nil, err
		}
	}
	if !r.json() {
		l.marks = shown.Marks
		l.sent = l.sessionLines(c, part.Snapshot)
	}
	if part.Snapshot.Len() == 0 && shown.Left == nil && len(shown.Queued) == 0 {
		r.note("%s is empty; add a message: %s", clean(part.Snapshot.Info.Name), r.again("add user TEXT"))
		return part, nil
	}
	if part.To == part.Snapshot.Len() && l.in.Around == "" && !l.in.Follow { // these belong to the end of the branch
		l.broken, l.queued = shown.Left, shown.Queued
	}
	l.tail = shown.Tail
	return part, l.all(part)
}

// ahead is how many of the last messages are read at once with everything else: the requested ones, and some more, since hidden ones do not count.
func (l *logPrinter) ahead() int {
	if l.in.Around != "" || l.in.Range != "" || l.last == 0 || l.last > 200 {
		return 0
	}
	return l.last + 8
}

// logPrinter prints messages of a branch.
type logPrinter struct {
	r       *run
	in      *logIn
	hidden  bool // hidden messages too
	last    int  // only the last so many, 0 for all
	grep    *regexp.Regexp
	marks   map[chatctx.ID]string
	sent    []sentLine
	tail    []*chatctx.Entry // the last messages of the branch, if they were read already
	broken  *chatctx.Entry   // what a dead program left of a reply: it follows the branch's messages
	queued  []*chatctx.Entry // messages that wait for their place after the running reply
	fields  []string         // of the one line for each message; nil: messages are shown as they are read
	left    int              // hidden messages left out
	printed int
}

// filters reads the flags that select messages.
func (l *logPrinter) filters() (err error) {
	r, in := l.r, l.in
	if l.last, err = r.most(in.N); err != nil {
		return err
	}
	switch in.Role {
	case "", pool.System, pool.User, pool.Assistant, pool.ToolRole:
	default:
		return &usageError{fmt.Sprintf("no role %q", in.Role), "a role is system, user, assistant or tool"}
	}
	if in.Grep != "" {
		if l.grep, err = regexp.Compile(in.Grep); err != nil {
			return usagef("--grep: %v", err)
		}
	}
	if l.fields, err = in.fields(r.json()); err != nil {
		return err
	}
	if in.Around != "" && in.Range != "" {
		return usagef("log takes a range or --around, not both")
	}
	if in.Follow && (in.Around != "" || in.Reverse) {
		return usagef("log -f follows the end of the branch: it takes no --around and no --reverse")
	}
	return nil
}

// stretch returns the range or what --around selects, else the whole branch.
func (l *logPrinter) stretch(snap *chatctx.Snapshot) (*chatctx.Stretch, error) {
	r := l.r
	ref := l.in.Range
	if l.in.Around != "" {
		ref = ".." + l.in.Around
	}
	if ref == "" {
		return &chatctx.Stretch{Snapshot: snap, From: 1, To: snap.Len()}, nil
	}
	part, err := snap.Range(r.ctx, ref)
	if err != nil {
		return nil, err
	}
	if part == nil {
		return nil, &usageError{fmt.Sprintf("%q is not a range A..B", ref), "one message: " + r.again("show "+quote(string(ref))) + "\nup to it: " + r.again("log .."+quote(string(ref)))}
	}
	if l.in.Around == "" {
		return part, nil
	}
	n := cmp.Or(l.last, aroundMost)
	l.last = 0
	part.From, part.To = max(part.To-n, 1), min(part.To+n, part.Snapshot.Len())
	return part, nil
}

// all prints what was selected. The last ones are found backwards, without reading more than needed.
func (l *logPrinter) all(part *chatctx.Stretch) error {
	if part.To < part.From && l.broken == nil && len(l.queued) == 0 {
		l.r.note("nothing lies in that range")
		return nil
	}
	l.sent = slices.DeleteFunc(l.sent, func(s sentLine) bool { return s.from < part.From || s.from > part.To && part.To < part.Snapshot.Len() })
	if l.last == 0 && !l.in.Reverse {
		for e, err := range l.forwards(part) {
			if err != nil {
				return err
			}
			if err := l.print(e); err != nil || l.r.stopped() {
				return err
			}
		}
		return l.end()
	}
	var found []*chatctx.Entry
	if l.in.Reverse {
		if err := l.queue(); err != nil {
			return err
		}
	}
	for e, err := range l.backwards(part) {
		if err != nil {
			return err
		}
		switch {
		case !l.fits(e):
			continue
		case l.in.Reverse:
			if err := l.show(e); err != nil || l.r.stopped() {
				return err
			}
		default:
			found = append(found, e)
		}
		if l.last > 0 && l.printed+len(found) >= l.last {
			break
		}
	}
	for _, e := range slices.Backward(found) {
		if err := l.show(e); err != nil || l.r.stopped() {
			return err
		}
	}
	return l.end()
}

// forwards yields the selected messages.
func (l *logPrinter) forwards(part *chatctx.Stretch) iter.Seq2[*chatctx.Entry, error] {
	return func(yield func(*chatctx.Entry, error) bool) {
		if part.From <= part.To {
			for e, err := range part.Snapshot.Entries(l.r.ctx, part.From, part.To) {
				if !yield(e, err) {
					return
				}
			}
		}
		if l.broken != nil {
			yield(l.broken, nil)
		}
	}
}

// backwards yields the selected messages, the last one first.
func (l *logPrinter) backwards(part *chatctx.Stretch) iter.Seq2[*chatctx.Entry, error] {
	return func(yield func(*chatctx.Entry, error) bool) {
		if l.broken != nil && !yield(l.broken, nil) {
			return
		}
		to := part.To
		for _, e := range slices.Backward(l.tail) {
			if e.Position != to || to < part.From {
				continue
			}
			if !yield(e, nil) {
				return
			}
			to--
		}
		if to < part.From {
			return
		}
		for e, err := range part.Snapshot.Entries(l.r.ctx, to, part.From) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// fits reports whether a message is selected.
func (l *logPrinter) fits(e *chatctx.Entry) bool {
	if l.in.Role != "" && e.Role != l.in.Role || l.in.Since > 0 && e.Created < pool.Time(l.in.Since) || l.grep != nil && !l.finds(e) {
		return false
	}
	if e.Hidden && !l.hidden {
		l.left++
		return false
	}
	return true
}

// finds reports whether the pattern matches a message's words, its calls or its result.
func (l *logPrinter) finds(e *chatctx.Entry) bool {
	if l.grep.MatchString(e.Text()) {
		return true
	}
	for i := range e.Calls {
		if c := &e.Calls[i]; l.grep.MatchString(c.Tool) || l.grep.Match(c.Arguments) {
			return true
		}
	}
	return e.Result != nil && (l.grep.MatchString(e.Result.Text) || l.grep.Match(e.Result.JSON))
}

func (l *logPrinter) print(e *chatctx.Entry) error {
	if !l.fits(e) {
		return nil
	}
	return l.show(e)
}

func (l *logPrinter) show(e *chatctx.Entry) error {
	if l.printed++; l.printed == 1 && l.last > 0 { // the messages before the last ones are not shown
		l.sent = slices.DeleteFunc(l.sent, func(s sentLine) bool { return s.from < e.Position })
	}
	return l.r.emit(e, func() {
		if l.fields != nil {
			l.r.printf("%s\n", messageLine(e, l.fields))
			return
		}
		if e.Position > 0 {
			l.saySent(e.Position)
		}
		l.r.printMessage(e, l.marks[e.ID], l.in.Thinking)
	})
}

// saySent prints what goes to the model from a position on, and what was not printed before it.
func (l *logPrinter) saySent(position int) {
	for len(l.sent) > 0 && l.sent[0].from <= position && !l.in.Reverse {
		l.r.printf("%s\n\n", l.r.paint(dim, "—— "+l.sent[0].text+" ——"))
		l.sent = l.sent[1:]
	}
}

// queue prints the queued messages.
func (l *logPrinter) queue() error {
	for _, e := range l.queued {
		if err := l.print(e); err != nil {
			return err
		}
	}
	l.queued = nil
	return nil
}

// end prints the queue, and says what was left out.
func (l *logPrinter) end() error {
	if len(l.sent) > 0 && l.printed > 0 && l.fields == nil {
		l.saySent(l.sent[len(l.sent)-1].from)
	}
	if err := l.queue(); err != nil {
		return err
	}
	if l.left > 0 {
		l.r.note("%s not shown; --hidden shows them", count(l.left, "hidden message"))
	}
	if l.printed == 0 && (l.in.Role != "" || l.in.Since > 0 || l.grep != nil) {
		l.r.note("no message fits")
	}
	return nil
}
