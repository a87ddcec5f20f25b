package operation

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/quote"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// RecallRead names where to read.
type RecallRead struct {
	At     string `json:"at,omitempty" doc:"CONVERSATION/MESSAGE as search returned it, or CONVERSATION for its beginning"`
	Cursor string `json:"cursor,omitempty" doc:"goes on where an answer ended, in place of at"`
	Tokens int    `json:"tokens,omitempty" doc:"about how long the answer may be, from 200 to 8000 tokens; 1000 without it"`
}

// readPlace is where reading goes on: at a byte of the clean text of the message at a position.
type readPlace struct {
	context, branch chatctx.ID
	position, byte  int
}

func (p readPlace) cursor() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s %s %d %d", p.context, p.branch, p.position, p.byte))
}

func placeFrom(cursor string) (p readPlace, err error) {
	var context, branch string
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		_, err = fmt.Sscanf(string(raw), "%36s %36s %d %d", &context, &branch, &p.position, &p.byte)
	}
	if err == nil {
		p.context, err = uuid.Parse(context)
	}
	if err == nil {
		p.branch, err = uuid.Parse(branch)
	}
	if err != nil || p.position < 1 || p.byte < 0 {
		return p, base.Invalid("cursor is not one that read returned")
	}
	return p, nil
}

func recallRead(r *Request, in *RecallRead) (out Recalled, err error) {
	f, err := frame(in.Tokens)
	if err != nil {
		return out, err
	}
	if (in.At == "") == (in.Cursor == "") {
		return out, base.Invalid("read takes at or cursor")
	}
	ref, message, _ := strings.Cut(in.At, "/")
	var from readPlace
	if in.Cursor != "" {
		if from, err = placeFrom(in.Cursor); err != nil {
			return out, err
		}
		ref = from.context.String()
	}
	c, info, err := r.recalled(ref)
	if err != nil {
		return out, err
	}
	w := &recallReader{r: r, f: f, c: c, info: info}
	if w.marks, err = c.Marks(r.Ctx); err != nil {
		return out, err
	}
	switch {
	case in.Cursor != "":
		err = w.from(from)
	case message == "":
		err = w.branch(info.Active, 1)
	case !isRecallID(message):
		err = base.Invalid("at is not CONVERSATION/MESSAGE as search returned it")
	default:
		err = w.message(record.Ref(message))
	}
	return Recalled{f.String()}, err
}

// recallReader writes messages of a conversation into a frame.
type recallReader struct {
	r     *Request
	f     *quote.Frame
	c     *chatctx.ChatContext
	info  *record.ContextInfo
	marks map[chatctx.ID]string
}

// head says which conversation and branch it is.
func (w *recallReader) head(branch string) {
	w.f.Say("conversation %s with %s%s", record.Short(w.c.ID), plural.Count(w.info.Branches, "branch"), day(w.info.Updated))
	w.f.Name("title", w.info.Title)
	if branch != w.info.Active {
		w.f.Say("tried on a branch, and dropped: the conversation went on without it")
		w.f.Name("branch", branch)
	}
}

// branch reads a branch from a position on.
func (w *recallReader) branch(name string, position int) error {
	snap, err := w.c.Snapshot(w.r.Ctx, name)
	if err != nil {
		return err
	}
	w.head(snap.Info.Name)
	return w.write(snap, readPlace{w.c.ID, snap.Info.ID, position, 0})
}

// from goes on at a place.
func (w *recallReader) from(p readPlace) error {
	snap, err := w.c.Snapshot(w.r.Ctx, p.branch.String())
	if err != nil {
		return base.Says(base.ErrNotFound, "the branch of this cursor is gone: search again")
	}
	return w.write(snap, p)
}

// message reads from a message on, on the active branch if that has it.
func (w *recallReader) message(ref record.Ref) error {
	all, err := w.c.Branches(w.r.Ctx)
	if err != nil {
		return err
	}
	for _, b := range all { // the active one is the first
		snap, err := w.c.Snapshot(w.r.Ctx, b.Name)
		if err != nil {
			return err
		}
		id, position, _, err := snap.Locate(w.r.Ctx, ref)
		if err != nil {
			return base.Says(base.ErrNotFound, "no message of the conversation has that id: use at from search")
		}
		if position > 0 {
			return w.branch(b.Name, position)
		}
		if b == all[len(all)-1] {
			return w.alone(id)
		}
	}
	return nil
}

// alone reads a message that no branch has.
func (w *recallReader) alone(id chatctx.ID) error {
	m, err := w.c.Message(w.r.Ctx, id)
	if err != nil {
		return err
	}
	w.head(w.info.Active)
	w.f.Say("tried, and taken back: no branch has it any more")
	text := textFor(m)
	if !mayShow(m, w.marks, text) {
		return base.Says(base.ErrNotFound, "no message of the conversation has that id: use at from search")
	}
	w.f.Say("%s%s", roleWord(m), day(m.Created))
	sayCalls(w.f, m)
	if n := w.f.Text(text, w.f.Left()-len("the rest is left out: ask for more tokens\n")); n < len(text) {
		w.f.Say("the rest is left out: ask for more tokens")
	}
	return nil
}

// Bytes of a frame that are kept for what stands before a message and for the cursor at the end.
const (
	headRoom   = 400
	cursorRoom = 160
)

// write writes the messages of a branch from a place on, as far as the frame goes.
func (w *recallReader) write(snap *chatctx.Snapshot, p readPlace) error {
	for e, err := range snap.Entries(w.r.Ctx, p.position, snap.Len()) {
		if err != nil {
			return err
		}
		text := textFor(e.Message)
		if !mayShow(e.Message, w.marks, text) || text == "" {
			continue
		}
		p.position = e.Position
		if w.f.Left() < headRoom+cursorRoom {
			return w.more(p)
		}
		w.f.Say("\n%d of %d. %s%s", e.Position, snap.Len(), roleWord(e.Message), day(e.Created))
		sayCalls(w.f, e.Message)
		rest := text[min(p.byte, len(text)):]
		n := w.f.Text(rest, w.f.Left()-cursorRoom)
		if n < len(rest) {
			p.byte += n
			return w.more(p)
		}
		p.byte = 0
	}
	w.f.Say("\nthe branch ends here")
	return nil
}

func (w *recallReader) more(p readPlace) error {
	w.f.Say("\nit goes on: read with cursor %s", p.cursor())
	return nil
}

// RecallRecent asks for the last conversations.
type RecallRecent struct {
	Tokens int `json:"tokens,omitempty" doc:"about how long the answer may be, from 200 to 8000 tokens; 1000 without it"`
}

// recallRecent lists the last conversations of the caller's folder, as many as the answer holds.
func recallRecent(r *Request, in *RecallRecent) (out Recalled, err error) {
	f, err := frame(in.Tokens)
	if err != nil {
		return out, err
	}
	for info, err := range r.Store.Contexts(r.Ctx, record.ListOptions{Folders: r.Folders}) {
		if err != nil {
			return out, err
		}
		if f.Left() < headRoom {
			f.Say("there are more: search finds them")
			break
		}
		f.Say("\n%s%s: %s, %s", record.Short(info.ID), day(info.Updated), plural.Count(info.Messages, "message"), plural.Count(info.Branches, "branch"))
		f.Name("title", info.Title)
	}
	return Recalled{f.String()}, nil
}

// RecallTree names a conversation.
type RecallTree struct {
	At     string `json:"at" doc:"CONVERSATION, or CONVERSATION/MESSAGE as search returned it"`
	From   int    `json:"from,omitempty" doc:"the first branch; 1 without it"`
	Tokens int    `json:"tokens,omitempty" doc:"about how long the answer may be, from 200 to 8000 tokens; 1000 without it"`
}

func recallTree(r *Request, in *RecallTree) (out Recalled, err error) {
	f, err := frame(in.Tokens)
	if err != nil {
		return out, err
	}
	ref, _, _ := strings.Cut(in.At, "/")
	c, info, err := r.recalled(ref)
	if err != nil {
		return out, err
	}
	w := &recallReader{r: r, f: f, c: c, info: info}
	if w.marks, err = c.Marks(r.Ctx); err != nil {
		return out, err
	}
	branches, err := c.Tree(r.Ctx)
	if err != nil {
		return out, err
	}
	w.head(info.Active)
	tree, read := drawnOf(branches), newTreeReader(r, c)
	for row := max(in.From, 1); row <= len(branches); row++ {
		if f.Left() < headRoom+cursorRoom {
			f.Say("\nthere are more: tree with from %d", row)
			return Recalled{f.String()}, nil
		}
		if err := w.row(tree, read, row); err != nil {
			return out, err
		}
	}
	return Recalled{f.String()}, w.removed()
}

// row writes a branch: where it leaves, how it stands, and what it begins with.
func (w *recallReader) row(tree *drawn, read *TreeReader, row int) error {
	b := tree.branches[row-1]
	w.f.Say("\n%d. %s", row, plural.Count(b.Messages, "message"))
	w.f.Name("branch", b.Name)
	if on := tree.leaves[row]; on > 0 {
		w.f.Say("it leaves branch %d after message %d", on, b.Shared)
	}
	if b.Active {
		w.f.Say("the conversation goes on here")
	} else {
		w.f.Say("tried, and dropped")
	}
	e, err := read.Entry(b.Name, min(b.Shared+1, b.Messages))
	if e == nil || err != nil {
		return err
	}
	text := textFor(e.Message)
	if text == "" || !mayShow(e.Message, w.marks, text) {
		return nil
	}
	w.f.Say("it begins with %s, %s:", placeOf(w.c.ID, e.ID), roleWord(e.Message))
	w.f.Name("", text)
	return w.denials(b)
}

// mostLookedAt is how many of a branch's own messages are looked at for calls that were denied.
const mostLookedAt = 200

// denials says why calls of a branch's own messages were denied, as far as the frame goes.
func (w *recallReader) denials(b *chatctx.TreeBranch) error {
	snap, err := w.c.Snapshot(w.r.Ctx, b.Name)
	if err != nil {
		return err
	}
	for e, err := range snap.Entries(w.r.Ctx, b.Shared+1, min(snap.Len(), b.Shared+mostLookedAt)) {
		if err != nil {
			return err
		}
		denied := slices.ContainsFunc(e.Calls, func(c pool.Call) bool { return c.Status == pool.Denied })
		if denied && mayShow(e.Message, w.marks, textFor(e.Message)) && w.f.Left() > headRoom {
			sayCalls(w.f, e.Message)
		}
	}
	return nil
}

// removed names the branches that were removed and can come back.
func (w *recallReader) removed() error {
	return view.At(w.r.Ctx, base.ContextOf(w.c.Store(), w.c.ID), func(tx kv.Tx, rec *base.ContextRecord) error {
		all, err := view.RemovedBranches(tx, w.c.ID, rec)
		if len(all) > 0 {
			w.f.Say("\n%s removed", plural.Count(len(all), "branch"))
		}
		return err
	})
}
