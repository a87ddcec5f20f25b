package ui

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/screen"
)

// Options are options of Run. Store, In and Out are required.
type Options struct {
	Store   *chatctx.Store
	In      io.Reader
	Out     io.Writer
	Env     []string // nil means the process's own
	Context string   // the first conversation; "" means the current one, or the list if there is none
	Color   bool
	// Turn returns the turn that asks a model on a branch, with settings above the branch's own; nil means that no model can be asked. told takes what a person
	// has to know of the calls that it runs.
	Turn func(c *chatctx.ChatContext, branch string, set map[string]json.RawMessage, told func(text string)) *turn.Turn
	// Command returns the tool that a call would run if that is a command, else nil; a nil Command knows none.
	Command func(ctx context.Context, in *chatctx.ChatContext, c *record.Call) (*record.Tool, error)
	// Editor returns the command with which the person edits a file.
	Editor func(file string) (*exec.Cmd, error)
	Prices *cost.Prices
	By     string // the name recorded with decisions about calls; "" means the store's person
}

// Run shows the program until the person leaves it or ctx ends.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return run(ctx, cancel, newModel(ctx, o))
}

// run shows a model until it ends, with options for tests.
func run(ctx context.Context, cancel context.CancelFunc, m *model, more ...tea.ProgramOption) error {
	o := m.o
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler()}
	if o.Env != nil {
		options = append(options, tea.WithEnvironment(o.Env))
	}
	p := tea.NewProgram(m, append(options, more...)...)
	m.send = p.Send
	_, err := p.Run()
	cancel()
	m.errands.wait()
	m.list.stop()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return errors.Join(m.fatal, err)
}

// pane is the target of keys.
type pane int

const (
	onTree pane = iota
	onList
	onPreview
)

// Update handles a message. It neither reads nor writes the store: commands do.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if k, ok := msg.(tea.KeyPressMsg); ok && k.Keystroke() == "alt+esc" { // esc pressed twice, faster than the terminal can distinguish
		esc := tea.KeyPressMsg{Code: tea.KeyEscape}
		_, first := m.Update(esc)
		_, second := m.Update(esc)
		return m, tea.Batch(first, second)
	}
	if isInput(msg) {
		if held, cmd := m.hold(msg); held {
			return m, m.errands.counted(cmd)
		}
	}
	cmd := m.step(msg)
	for len(m.typed) > 0 && !m.held() {
		next := m.typed[0]
		m.typed, m.waitsFor = m.typed[1:], nil
		cmd = tea.Batch(cmd, m.step(next))
	}
	return m, m.errands.counted(cmd)
}

// step handles one message, and reads what the screen then shows.
func (m *model) step(msg tea.Msg) tea.Cmd {
	m.input = msg
	follow, at := m.follow, m.stands()
	cmd := m.update(msg)
	if isInput(msg) && m.follow == follow && m.stands() != at {
		m.follow, m.atEnd = nil, false
	}
	m.arrange()
	if isInput(msg) {
		cmd = tea.Batch(cmd, m.readNext())
	}
	return tea.Batch(cmd, m.wants())
}

// stands is the person's place, to see whether they moved.
type stands struct {
	conv        *conversation
	cursor, top int
}

func (m *model) stands() stands {
	s := stands{conv: m.conv, top: m.preview.top}
	if m.conv != nil {
		s.cursor = m.conv.cursor
	}
	return s
}

func (m *model) update(msg tea.Msg) tea.Cmd {
	if m.leaving {
		return nil
	}
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
	case tea.ModeReportMsg:
		if msg.Mode == ansi.ModeUnicodeCore && (msg.Value.IsReset() || msg.Value.IsSet()) {
			m.method = ansi.GraphemeWidth
		}
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		return m.paste(msg.Content)
	case tea.MouseClickMsg:
		return m.click(tea.Mouse(msg))
	case tea.MouseWheelMsg:
		return m.wheel(tea.Mouse(msg))
	case factsMsg:
		return m.opened(msg)
	case entriesMsg:
		return m.reads(msg)
	case listMsg:
		m.list.read(msg)
		m.complain(msg.err)
	case newsMsg:
		return m.readIt(msg)
	case previewMsg:
		m.readPreview(msg)
	case changesMsg:
		return m.noticed(msg)
	case actedMsg:
		return m.acted(msg)
	case doneMsg:
		return m.done(msg)
	case decidedMsg:
		msg.of.ours[msg.call] = true
		return tea.Batch(m.done(msg.doneMsg), msg.of.read(m))
	case streamMsg:
		return m.streamed(msg)
	case movedMsg:
		msg.stream.branch, msg.stream.asking.branch = msg.branch, msg.branch
		if m.conv != nil && m.conv.c.ID == msg.context {
			return m.reread()
		}
	case madeMsg:
		m.focus = onTree
		return m.opens(func() (*chatctx.ChatContext, error) { return msg.c, nil })
	case placedMsg:
		m.placed(msg)
	case editedMsg:
		if m.complain(msg.err); msg.err == nil {
			return msg.then(m, msg.text)
		}
	case listedMsg:
		m.say(false, msg.note)
		m.list.changed(msg.info)
		back := m.trashed
		if m.trashed = nil; msg.info.Trashed != 0 {
			m.trashed = msg.info
		} else if back != nil {
			m.list.seek(back.ID)
		}
		return m.reread() // any conversation: it may have been the current one
	case errMsg:
		m.complain(msg.error)
	default:
		if m.over != nil {
			return m.over.update(m, msg)
		}
	}
	return nil
}

// wants reads what the screen shows and lacks.
func (m *model) wants() tea.Cmd {
	var cmds []tea.Cmd
	if m.h == 0 {
		return nil
	}
	if m.list != nil && m.listShown() {
		cmds = append(cmds, m.list.wants())
	}
	if v := m.conv; v != nil {
		if parts := v.missing(); len(parts) > 0 {
			f, ctx := v.facts, m.ctx
			cmds = append(cmds, func() tea.Msg {
				read, err := readEntries(ctx, f.c, parts)
				return entriesMsg{f, read, err}
			})
		}
	}
	cmds = append(cmds, m.previewed(), m.more())
	return tea.Batch(cmds...)
}

// previewed shows what is at the cursor of the list or the tree in the preview.
func (m *model) previewed() tea.Cmd {
	of := reading{columns: m.panes().preview.w, method: m.method == ansi.GraphemeWidth, on: m.readsOn}
	if of.columns == 0 {
		return nil
	}
	if m.left == onList || m.conv == nil {
		info := m.list.at(m.list.cursor)
		if info == nil {
			return nil
		}
		of.context, of.branch, of.revision, of.on = info.ID, info.Active, uint64(info.Updated), false
		return m.show(of)
	}
	r := m.conv.here()
	if r == nil || r.Kind == screen.BeginRow {
		return nil
	}
	b := m.conv.tree.Branches[r.Branch]
	of.context, of.branch, of.position, of.revision = m.conv.c.ID, b.Name, r.Position, uint64(m.conv.info.Updated) // and not the branch's, since tags are shown there too
	return m.show(of)
}
