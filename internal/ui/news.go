package ui

import (
	"context"
	"errors"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
)

// news are the conversations of the list that changed and must be read. One reading runs at a time, so that an older result never follows a newer one.
type news struct {
	of      map[chatctx.ID]bool
	reading bool
}

func (n *news) add(id chatctx.ID) {
	if n.of == nil {
		n.of = map[chatctx.ID]bool{}
	}
	n.of[id] = true
}

// newsMsg has conversations that changed; those that do not exist any more have no info.
type newsMsg struct {
	infos map[chatctx.ID]*record.ContextInfo
	err   error
}

// readNews reads the conversations that changed.
func (m *model) readNews() tea.Cmd {
	n := &m.news
	if n.reading || len(n.of) == 0 {
		return nil
	}
	of, ctx, st := n.of, m.ctx, m.st
	n.of, n.reading = nil, true
	return func() tea.Msg {
		msg := newsMsg{infos: map[chatctx.ID]*record.ContextInfo{}}
		for id := range of {
			info, err := infoOf(ctx, st, id)
			if err != nil && !errors.Is(err, chatctx.ErrNotFound) {
				msg.err = err
				continue
			}
			msg.infos[id] = info
		}
		return msg
	}
}

// infoOf reads the information about a conversation.
func infoOf(ctx context.Context, st *chatctx.Store, id chatctx.ID) (*record.ContextInfo, error) {
	c, err := st.Context(ctx, id.String())
	if err != nil {
		return nil, err
	}
	return c.Info(ctx)
}

// readIt puts the news into the list.
func (m *model) readIt(msg newsMsg) tea.Cmd {
	m.news.reading = false
	for id, info := range msg.infos {
		if info == nil {
			m.list.gone(id)
			continue
		}
		m.list.changed(info)
	}
	m.complain(msg.err)
	return m.readNews()
}
