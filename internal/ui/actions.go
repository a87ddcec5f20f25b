package ui

import (
	"context"
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/screen"
)

func changingKeys() []key {
	return []key{
		{[]string{"s"}, inTree | inPreview, "switch", "make the branch at the cursor the active one", (*model).switchHere},
		{[]string{"f"}, inTree | inPreview, "fork", "fork at the message, and go on there", (*model).forkHere},
		{[]string{"e"}, inTree | inPreview, "edit", "edit the message, on a branch of its own", (*model).editHere},
		{[]string{"E"}, inTree | inPreview, "", "edit the message in your editor (VISUAL, EDITOR)", (*model).editInEditor},
		{[]string{"m"}, inTree | inPreview, "", "mark the place, to compare it with another", (*model).markHere},
		{[]string{"c"}, inTree | inPreview, "compare", "compare with the marked place; without one, compare the branches of the fork above", (*model).compareHere},
		{[]string{"t"}, inTree | inPreview, "", "take the answer in place of the active branch's own", (*model).takeHere},
		{[]string{"p"}, inTree | inPreview, "", "pick the message: add it at the end of the active branch", (*model).pickHere},
		{[]string{"M"}, inTree | inPreview, "", "merge the branch at the cursor into the active one", (*model).mergeHere},
		{[]string{"R"}, inTree | inPreview, "", "rewind the branch to the message", (*model).rewindHere},
		{[]string{"d"}, inTree | inPreview, "", "drop the message from the branch", (*model).dropHere},
		{[]string{"T"}, inTree | inPreview, "", "tag the message; an empty name removes its tag", (*model).tagHere},
		{[]string{"b"}, inTree | inPreview, "", "rename the branch", (*model).renameBranch},
		{[]string{"D"}, inTree | inPreview, "", "remove the branch", (*model).removeBranch},
		{[]string{"y"}, inTree | inPreview, "", "copy the message to the clipboard", (*model).copyHere},
		{[]string{"u"}, inTree | inPreview, "undo", "undo what was done last on the active branch", (*model).undo},
		{[]string{"U", "ctrl+r"}, inTree | inPreview, "", "redo", (*model).redo},
		{[]string{"s"}, inList, "use", "make the conversation the current one for all commands", (*model).use},
		{[]string{"c"}, inList, "new", "begin a conversation", (*model).create},
		{[]string{"b"}, inList, "", "rename the conversation", (*model).rename},
		{[]string{"D"}, inList, "", "put the conversation into the trash", (*model).trash},
		{[]string{"u"}, inList, "", "undo what was done last in the conversation, and take out of the trash what was just put there", (*model).undoInList},
	}
}

// doneMsg is the result of a change.
type doneMsg struct {
	note        string
	err         error
	head        string // the branch to whose head the cursor goes
	undoable    bool   // u takes it back
	undone      string // a branch on which something was undone
	became             // the outcome of an answer
	draft, back string // typed text that was not stored, and the name of the draft for it
}

// report shows the result of a change until the next key, and until it is not the newest change any more if it says that u takes it back.
func (m *model) report(d doneMsg) {
	text := d.note
	if d.err != nil {
		text = m.inKeys(d.err)
	}
	if text == "" || errors.Is(d.err, context.Canceled) {
		return
	}
	if d.undoable {
		text += "; u takes it back"
	}
	m.say(d.err != nil, text)
	m.takesBack = d.undoable
}

// done reports a change and reads what it changed.
func (m *model) done(msg doneMsg) tea.Cmd {
	m.report(msg)
	m.trashed = nil
	if msg.head != "" {
		m.goHead = msg.head
	}
	if msg.undone != "" {
		m.undone = msg.undone
	}
	return m.reread() // even after a failure, which outdated data on the screen may have caused
}

// change makes the changes that fill puts into a batch on a branch, "" for the active one; note describes the result.
func (m *model) change(branch string, fill func(*chatctx.Batch), note func(*record.Committed) doneMsg) tea.Cmd {
	if m.conv == nil {
		return nil
	}
	c, ctx := m.conv.c, m.ctx
	return m.act(func() tea.Msg {
		b := c.Begin(branch)
		fill(b)
		done, err := b.Commit(ctx)
		if err != nil {
			return doneMsg{err: err}
		}
		msg := note(done)
		msg.undoable = done.Operation != ""
		return msg
	})
}

// said returns a note that does not depend on the result.
func said(format string, args ...any) func(*record.Committed) doneMsg {
	return func(*record.Committed) doneMsg { return doneMsg{note: fmt.Sprintf(format, args...)} }
}

// atMessage calls do with the message at the cursor once it is read.
func (m *model) atMessage(do func(v *conversation, r *screen.Row, e *chatctx.Entry) tea.Cmd) tea.Cmd {
	v := m.conv
	if v == nil {
		return nil
	}
	r := v.here()
	if r == nil || r.Kind == screen.BeginRow {
		m.say(true, "no message stands here")
		return nil
	}
	if r.Kind == screen.GapRow {
		m.say(true, "these messages are folded; l unfolds them")
		return nil
	}
	e := v.newest(v.tree.Owner(r.Place))
	if e == nil && v.coming() {
		return m.await(func() bool { return m.conv == nil || !m.conv.coming() })
	}
	if e == nil {
		m.say(true, "the message could not be read")
		return nil
	}
	return do(v, r, e)
}

// nameOf returns the name of a branch of the tree.
func (v *conversation) nameOf(branch int) string { return v.tree.Branches[branch].Name }

func (m *model) switchHere() tea.Cmd {
	v := m.conv
	if v == nil || len(v.tree.Branches) == 0 {
		return nil
	}
	name := v.nameOf(v.headHere())
	return m.change("", func(b *chatctx.Batch) { b.Switch(name) }, said("now on %s", name))
}

func (m *model) forkHere() tea.Cmd {
	return m.atMessage(func(v *conversation, r *screen.Row, e *chatctx.Entry) tea.Cmd {
		on := v.nameOf(v.branchHere())
		m.ask("fork at "+e.Turn+": the new branch's name", "", func(m *model, name string) (tea.Cmd, error) {
			return m.change(on, func(b *chatctx.Batch) { b.Fork(name, chatctx.ForkOptions{At: record.RefTo(e.ID)}) },
				func(c *record.Committed) doneMsg {
					return doneMsg{note: "forked; now on " + c.Last().Branch, head: c.Last().Branch}
				}), nil
		})
		return nil
	})
}

func (m *model) editHere() tea.Cmd {
	return m.atMessage(func(v *conversation, r *screen.Row, e *chatctx.Entry) tea.Cmd {
		m.askEdit(v, r, e)
		return nil
	})
}

func (m *model) editInEditor() tea.Cmd {
	return m.atMessage(func(v *conversation, r *screen.Row, e *chatctx.Entry) tea.Cmd {
		return m.editAnswer(m.askEdit(v, r, e))
	})
}

// askEdit asks for a new text of a message.
func (m *model) askEdit(v *conversation, r *screen.Row, e *chatctx.Entry) *question {
	return m.askText("edit "+e.Turn, "edit "+e.ID.String(), e.Text(), m.edits(v, r, e))
}

// edits returns a function that replaces a message's text, on a new branch.
func (m *model) edits(v *conversation, r *screen.Row, e *chatctx.Entry) func(*model, string) (tea.Cmd, error) {
	on := v.nameOf(r.Branch)
	return func(m *model, text string) (tea.Cmd, error) {
		if text == e.Text() {
			m.say(false, "the text was not changed, so nothing was done")
			return nil, nil
		}
		return m.change(on, func(b *chatctx.Batch) { b.Edit(record.RefTo(e.ID), text, record.EditOptions{}) },
			func(c *record.Committed) doneMsg {
				return doneMsg{note: "edited; now on " + c.Last().Branch, head: c.Last().Branch}
			}), nil
	}
}

func (m *model) pickHere() tea.Cmd {
	return m.atMessage(func(v *conversation, r *screen.Row, e *chatctx.Entry) tea.Cmd {
		from := v.nameOf(r.Branch)
		return m.change("", func(b *chatctx.Batch) { b.Pick(from, record.RefTo(e.ID)) }, func(c *record.Committed) doneMsg {
			return doneMsg{note: fmt.Sprintf("picked %s for %s", screen.Count(len(c.Last().Placed), "message"), c.Branch), head: c.Branch}
		})
	})
}

func (m *model) mergeHere() tea.Cmd {
	v := m.conv
	if v == nil {
		return nil
	}
	from := v.nameOf(v.headHere())
	if v.headHere() == v.active() {
		m.say(true, "stand on the branch that is to be merged into the active one")
		return nil
	}
	return m.change("", func(b *chatctx.Batch) { b.Merge(from, chatctx.MergeOptions{}) }, func(c *record.Committed) doneMsg {
		if c.Operation == "" {
			return doneMsg{note: from + " has nothing that is not here", head: c.Branch}
		}
		return doneMsg{note: fmt.Sprintf("merged %s from %s", screen.Count(len(c.Last().Placed), "message"), from), head: c.Branch}
	})
}

func (m *model) rewindHere() tea.Cmd {
	return m.atMessage(func(v *conversation, r *screen.Row, e *chatctx.Entry) tea.Cmd {
		on := v.nameOf(v.branchHere())
		if v.tree.Branches[v.branchHere()].Messages == r.Position {
			m.say(true, on+" ends here already")
			return nil
		}
		return m.change(on, func(b *chatctx.Batch) { b.Rewind(record.RefTo(e.ID)) }, func(c *record.Committed) doneMsg {
			return doneMsg{note: fmt.Sprintf("rewound %s by %s", c.Branch, screen.Count(c.Last().Removed, "message"))}
		})
	})
}

func (m *model) dropHere() tea.Cmd {
	return m.atMessage(func(v *conversation, r *screen.Row, e *chatctx.Entry) tea.Cmd {
		on := v.nameOf(v.branchHere())
		return m.change(on, func(b *chatctx.Batch) { b.Drop(record.RefTo(e.ID)) }, func(c *record.Committed) doneMsg {
			return doneMsg{note: fmt.Sprintf("took %s off %s", screen.Count(c.Last().Removed, "message"), c.Branch)}
		})
	})
}

func (m *model) tagHere() tea.Cmd {
	return m.atMessage(func(v *conversation, r *screen.Row, e *chatctx.Entry) tea.Cmd {
		on, had := v.nameOf(r.Branch), strings.Join(v.tags[e.ID], " ")
		if len(v.tags[e.ID]) > 1 {
			had = v.tags[e.ID][0]
		}
		q := m.ask("tag "+e.Turn, had, func(m *model, name string) (tea.Cmd, error) {
			if name = strings.TrimSpace(name); name == had {
				return nil, nil
			}
			return m.change(on, func(b *chatctx.Batch) {
				if had != "" {
					b.Untag(had)
				}
				if name != "" {
					b.Tag(name, record.RefTo(e.ID))
				}
			}, said("tagged %s", name)), nil
		})
		q.empty = had != ""
		return nil
	})
}

func (m *model) renameBranch() tea.Cmd {
	v := m.conv
	if v == nil {
		return nil
	}
	name := v.nameOf(v.headHere())
	m.ask("rename the branch "+name, name, func(m *model, to string) (tea.Cmd, error) {
		if to == name {
			return nil, nil
		}
		return m.change("", func(b *chatctx.Batch) { b.RenameBranch(name, to) }, said("%s is now %s", name, to)), nil
	})
	return nil
}

func (m *model) removeBranch() tea.Cmd {
	v := m.conv
	if v == nil {
		return nil
	}
	name := v.nameOf(v.headHere())
	return m.change("", func(b *chatctx.Batch) { b.RemoveBranch(name) }, said("removed the branch %s", name))
}

func (m *model) copyHere() tea.Cmd {
	return m.atMessage(func(v *conversation, r *screen.Row, e *chatctx.Entry) tea.Cmd {
		text := e.Text()
		if text == "" {
			text = screen.Body(e.Message, true)
		}
		m.say(false, "copied "+screen.Count(len([]rune(text)), "character"))
		return tea.SetClipboard(text)
	})
}

func (m *model) undo() tea.Cmd { return m.undoOne("") }

// undoOne undoes an operation of the open conversation; "" means the newest on the active branch.
func (m *model) undoOne(op string) tea.Cmd {
	if m.conv == nil {
		return nil
	}
	c, branch := m.conv.c, m.conv.info.Active
	return m.act(func() tea.Msg {
		return undone("took back")(m.takeBack(c, branch, op))
	})
}

// takeBack undoes an operation of a conversation; "" means the newest on the branch or on the conversation, never one of the whole store, for example an
// import, which this screen does not show.
func (m *model) takeBack(c *chatctx.ChatContext, branch, op string) (*record.Undone, error) {
	if op != "" {
		return m.st.Undo(m.ctx, c.ID.String(), branch, op)
	}
	u, err := c.Undo(m.ctx, branch)
	if errors.Is(err, chatctx.ErrNotFound) {
		return nil, errors.New("this conversation has nothing to take back on its active branch")
	}
	return u, err
}

// redo redoes what was undone last: on its branch, which may be gone with it, else on the active one.
func (m *model) redo() tea.Cmd {
	if m.conv == nil {
		return nil
	}
	c, active, last := m.conv.c, m.conv.info.Active, m.undone
	return m.act(func() tea.Msg {
		if last != "" {
			if u, err := m.st.Redo(m.ctx, c.ID.String(), last); !errors.Is(err, chatctx.ErrNotFound) {
				return undone("did again: took back")(u, err)
			}
		}
		return undone("did again: took back")(m.st.Redo(m.ctx, c.ID.String(), active))
	})
}

// undone returns a function that reports what was undone.
func undone(did string) func(*record.Undone, error) tea.Msg {
	return func(u *record.Undone, err error) tea.Msg {
		if err != nil {
			return doneMsg{err: err}
		}
		if u.Undid == nil {
			return doneMsg{note: did}
		}
		msg := doneMsg{note: fmt.Sprintf("%s %s %s %s", did, u.Undid.ID, u.Undid.What, strings.Join(u.Undid.Branches, ", "))}
		if len(u.Undid.Branches) > 0 {
			msg.undone = u.Undid.Branches[0]
		}
		return msg
	}
}

// openContext opens a conversation.
func (m *model) openContext(info *record.ContextInfo) tea.Cmd {
	m.focus, m.readsOn = onTree, false
	if m.conv != nil && m.conv.c.ID == info.ID {
		return nil
	}
	return m.opens(m.opener(info.ID))
}

// inList calls do with the conversation at the cursor of the list, and shows the returned note.
func (m *model) inList(do func(info *record.ContextInfo) (string, error)) tea.Cmd {
	info := m.list.at(m.list.cursor)
	if info == nil {
		return nil
	}
	return m.changeOf(info, do)
}

// changeOf calls do with a conversation of the list, and reads what it changed.
func (m *model) changeOf(info *record.ContextInfo, do func(info *record.ContextInfo) (string, error)) tea.Cmd {
	find := m.opener(info.ID)
	return m.act(func() tea.Msg {
		note, err := do(info)
		if err != nil {
			return errMsg{err}
		}
		c, err := find()
		if err != nil {
			return errMsg{err}
		}
		now, err := c.Info(m.ctx)
		if err != nil {
			return errMsg{err}
		}
		return listedMsg{note, now}
	})
}

// listedMsg is a change of a conversation in the list.
type listedMsg struct {
	note string
	info *record.ContextInfo
}

func (m *model) use() tea.Cmd {
	return m.inList(func(info *record.ContextInfo) (string, error) {
		_, err := m.st.Use(m.ctx, info.ID.String())
		return "the current conversation is " + screen.Titled(info.Title, info.ID), err
	})
}

func (m *model) trash() tea.Cmd {
	return m.inList(func(info *record.ContextInfo) (string, error) {
		_, err := m.st.Trash(m.ctx, info.ID.String())
		return screen.Titled(info.Title, info.ID) + " is in the trash; u brings it back", err
	})
}

// undoInList restores the conversation that was last put into the trash, or else undoes the last operation in the conversation at the cursor.
func (m *model) undoInList() tea.Cmd {
	if info := m.trashed; info != nil {
		return m.changeOf(info, func(info *record.ContextInfo) (string, error) {
			_, err := m.st.Restore(m.ctx, info.ID.String())
			return screen.Titled(info.Title, info.ID) + " is back", err
		})
	}
	return m.inList(func(info *record.ContextInfo) (string, error) {
		c, err := m.st.Context(m.ctx, info.ID.String())
		if err != nil {
			return "", err
		}
		u, err := m.takeBack(c, "", "")
		if err != nil {
			return "", err
		}
		return "took back " + u.Undid.What, nil
	})
}

func (m *model) rename() tea.Cmd {
	info := m.list.at(m.list.cursor)
	if info == nil {
		return nil
	}
	m.ask("rename "+screen.Titled(info.Title, info.ID), info.Title, func(m *model, title string) (tea.Cmd, error) {
		return m.changeOf(info, func(info *record.ContextInfo) (string, error) {
			b := m.st.Begin(info.ID.String(), "")
			b.SetTitle(title)
			_, err := b.Commit(m.ctx)
			return "renamed", err
		}), nil
	})
	return nil
}

func (m *model) create() tea.Cmd {
	m.ask("a new conversation: its title", "", func(m *model, title string) (tea.Cmd, error) {
		return m.act(func() tea.Msg {
			c, err := m.st.New(m.ctx, record.NewContext{Title: title})
			if err != nil {
				return errMsg{err}
			}
			return madeMsg{c}
		}), nil
	})
	return nil
}

// madeMsg is a new conversation to open.
type madeMsg struct{ c *chatctx.ChatContext }
