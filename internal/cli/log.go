package cli

import (
	"slices"
	"strconv"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
)

// logPrinter prints messages of a branch in order.
type logPrinter struct {
	r        *run
	hidden   bool // hidden messages too
	full     bool // thinking in full
	marks    map[chatctx.ID]string
	sessions []branch.Session
	queued   []*chatctx.Entry // wait for their place after the reply that runs
	left     int              // hidden messages left out
}

// whole prints every message as it is read.
func (l *logPrinter) whole(snap *chatctx.Snapshot) error {
	for e, err := range snap.Entries(l.r.ctx, 1, 0) {
		if err != nil {
			return err
		}
		if err := l.print(e); err != nil || l.r.stopped() {
			return err
		}
	}
	return l.end()
}

// tail prints the last n messages; it reads backwards and no more than it needs.
func (l *logPrinter) tail(snap *chatctx.Snapshot, n int) error {
	var last []*chatctx.Entry
	for e, err := range snap.Entries(l.r.ctx, snap.Len(), 1) {
		if err != nil {
			return err
		}
		if e.Hidden && !l.hidden {
			l.left++
			continue
		}
		if last = append(last, e); len(last) == n {
			break
		}
	}
	slices.Reverse(last)
	for _, e := range last {
		if err := l.print(e); err != nil || l.r.stopped() {
			return err
		}
	}
	return l.end()
}

func (l *logPrinter) print(e *chatctx.Entry) error {
	if e.Hidden && !l.hidden {
		l.left++
		return nil
	}
	return l.r.emit(e, func() {
		for i, s := range l.sessions {
			if s.Start == e.Position && e.Position > 1 {
				l.r.printf("%s\n\n", l.r.paint(dim, "—— session "+strconv.Itoa(i+1)+" begins; what is above goes to the model as a summary ——"))
			}
		}
		l.r.printMessage(e, l.marks[e.ID], l.full)
	})
}

// end prints the queue, which belongs to the end of the branch.
func (l *logPrinter) end() error {
	for _, e := range l.queued {
		if err := l.print(e); err != nil {
			return err
		}
	}
	if l.left > 0 {
		l.r.note("%s not shown; --hidden shows them", count(l.left, "hidden message"))
	}
	return nil
}
