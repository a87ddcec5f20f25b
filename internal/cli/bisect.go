package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/pool"
)

// triedJSON is the verdict on a turn.
type triedJSON struct {
	Turn int  `json:"turn"`
	Good bool `json:"good"`
	// Outcome is how the turn's last answer ended if it is not whole.
	Outcome pool.Outcome `json:"outcome,omitempty"`
}

// bisectJSON is the turn at which a branch went wrong.
type bisectJSON struct {
	where
	Turn     *int        `json:"turn"`
	Message  *chatctx.ID `json:"message"`
	Position *int        `json:"position"`
	Tried    []triedJSON `json:"tried"`
}

// bisecting looks for the first bad turn of a branch.
type bisecting struct {
	r    *run
	of   record.Ref // the range as it was typed
	snap *chatctx.Snapshot
	cmd  []string // the command that judges; nil: a person does
	in   *bufio.Reader
	out  bisectJSON
}

type bisectIn struct {
	Range record.Ref `arg:"[A..B]"`
	Run   string     `flag:"test" old:"run" doc:"the {CMD} that tells good from bad; it is run without a shell"`
}

func doBisect(r *run, in *bisectIn) error {
	b := &bisecting{r: r, of: in.Range, in: bufio.NewReader(r.con.in)}
	var err error
	if in.Run != "" {
		if b.cmd, err = commandOf("--test", in.Run); err != nil {
			return err
		}
	}
	c, snap, err := r.snapshot()
	if err != nil {
		return err
	}
	stretch := &chatctx.Stretch{Snapshot: snap, From: 1, To: snap.Len()}
	if in.Range != "" {
		stretch, err = snap.Range(r.ctx, in.Range)
		switch {
		case err != nil:
			return err
		case stretch == nil:
			return usagef("bisect takes a range A..B, not %q", in.Range)
		}
	}
	b.snap = stretch.Snapshot
	b.out = bisectJSON{where: where{Context: c.ID, Branch: b.snap.Info.Name}, Tried: []triedJSON{}}
	first, last, err := b.turns(stretch)
	if err != nil {
		return err
	}
	if b.cmd == nil && (!r.con.asks() || r.json()) {
		return r.wantsTerminal("bisect asks about each turn, and needs a terminal for that", "let a program tell: chatctx bisect --test CMD")
	}
	bad, err := b.search(first, last)
	if err != nil {
		return err
	}
	return b.report(bad)
}

// turns returns the first and last turn of a stretch.
func (b *bisecting) turns(s *chatctx.Stretch) (first, last int, err error) {
	if s.To < s.From {
		return 0, 0, base.NotFound("turn in the range", string(b.of))
	}
	for i, pos := range []int{s.From, s.To} {
		page, err := b.snap.Page(b.r.ctx, pos, pos)
		if err != nil {
			return 0, 0, err
		}
		n, err := fmt.Sscanf(page[0].Turn[1:], "%d", []*int{&first, &last}[i])
		if n != 1 || err != nil {
			return 0, 0, fmt.Errorf("the label %q: %w", page[0].Turn, err)
		}
	}
	if first = max(first, 1); last < first {
		return 0, 0, base.NotFound("turn in the range", string(b.of))
	}
	return first, last, nil
}

// search finds the first bad turn, 0 if the last one is good. Everything before the first counts as good.
func (b *bisecting) search(first, last int) (int, error) {
	good, err := b.good(last)
	if err != nil || good {
		return 0, err
	}
	for first < last {
		mid := (first + last) / 2
		if good, err = b.good(mid); err != nil {
			return 0, err
		}
		if good {
			first = mid + 1
		} else {
			last = mid
		}
	}
	return last, nil
}

// good judges the branch up to the end of a turn.
func (b *bisecting) good(turn int) (bool, error) {
	end, err := b.end(turn)
	if err != nil {
		return false, err
	}
	judge := b.ask
	if b.cmd != nil {
		judge = b.runJudge
	}
	tried := triedJSON{Turn: turn}
	if end.Role == pool.Assistant {
		if tried.Outcome = pool.OutcomeOf(end.Message); tried.Outcome != pool.Answered {
			b.r.note("the answer of turn %d is %s", turn, screen.OutcomeText(end.Message))
		}
	}
	good, err := judge(turn, end)
	if tried.Good = good; err == nil {
		b.out.Tried = append(b.out.Tried, tried)
	}
	return good, err
}

// end returns the last message of a turn.
func (b *bisecting) end(turn int) (*chatctx.Entry, error) {
	e, err := b.snap.Place(b.r.ctx, record.Ref(fmt.Sprintf("branch:%s@a%d", b.snap.Info.Name, turn)))
	if errors.Is(err, chatctx.ErrNotFound) { // there is no answer
		return b.snap.Place(b.r.ctx, record.Ref(fmt.Sprintf("branch:%s@u%d", b.snap.Info.Name, turn)))
	}
	return e, err
}

func (b *bisecting) runJudge(turn int, end *chatctx.Entry) (bool, error) {
	messages, err := b.snap.Page(b.r.ctx, 1, end.Position)
	if err != nil {
		return false, err
	}
	in, err := json.Marshal(struct {
		Context  chatctx.ID       `json:"context"`
		Branch   string           `json:"branch"`
		Turn     int              `json:"turn"`
		Messages []*chatctx.Entry `json:"messages"`
	}{b.out.Context, b.out.Branch, turn, messages})
	if err != nil {
		return false, err
	}
	cmd := exec.CommandContext(b.r.ctx, b.cmd[0], b.cmd[1:]...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), b.r.con.err
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		b.r.note("turn %d: good", turn)
		return true, nil
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		b.r.note("turn %d: bad", turn)
		return false, nil
	}
	return false, fmt.Errorf("turn %d: %s: %w", turn, b.cmd[0], err)
}

// ask shows a turn and asks a person.
func (b *bisecting) ask(turn int, end *chatctx.Entry) (bool, error) {
	r := b.r
	begin, err := b.snap.Place(r.ctx, record.Ref(fmt.Sprintf("branch:%s@u%d", b.snap.Info.Name, turn)))
	if err != nil {
		return false, err
	}
	for e, err := range b.snap.Entries(r.ctx, begin.Position, end.Position) {
		if err != nil {
			return false, err
		}
		r.printMessage(e, "", false)
	}
	r.con.out.flush()
	for {
		fmt.Fprintf(r.con.err, "Up to turn %d: [g]ood, [b]ad or [q]uit? ", turn)
		answer, err := b.in.ReadString('\n')
		if errors.Is(err, io.EOF) { // Ctrl-D
			fmt.Fprintln(r.con.err)
			return false, context.Canceled
		}
		if err != nil {
			return false, err
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "g", "good":
			return true, nil
		case "b", "bad":
			return false, nil
		case "q", "quit":
			return false, context.Canceled
		}
	}
}

func (b *bisecting) report(bad int) error {
	r := b.r
	if bad == 0 {
		return r.emit(b.out, func() { r.printf("nothing went wrong: the last turn is good\n") })
	}
	end, err := b.end(bad)
	if err != nil {
		return err
	}
	b.out.Turn, b.out.Message, b.out.Position = &bad, &end.ID, &end.Position
	return r.emit(b.out, func() {
		r.printf("turn %d is the first bad one: #%d %s %s\n", bad, end.Position, short(end.ID), cut(preview(end.Message), 60))
		if bad > 1 {
			r.note("go on from where it was good: %s", r.again(fmt.Sprintf("fork NAME --branch %s --at a%d", quote(b.out.Branch), bad-1)))
		}
	})
}
