package ui

import (
	"context"
	"iter"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
)

// list has the conversations, last changed first, and the filter on their titles. It is read as far as the screen needs; with a filter to its end.
type list struct {
	roll
	infos  []*record.ContextInfo
	known  map[chatctx.ID]bool
	folds  [][]rune // the titles in the filter's form
	found  []int    // the indexes that match the filter, nil without one
	filter field
	typing bool       // keys go to the filter
	sought chatctx.ID // the cursor goes there once it is read

	next  func() (*record.ContextInfo, error, bool)
	stop  func()
	busy  bool
	whole bool
	err   error
}

// listMsg has more conversations.
type listMsg struct {
	infos []*record.ContextInfo
	whole bool
	err   error
}

func newList(ctx context.Context, st *chatctx.Store) *list {
	l := &list{known: map[chatctx.ID]bool{}}
	l.next, l.stop = iter.Pull2(st.Contexts(ctx, record.ListOptions{Orderly: true}))
	return l
}

// count returns the number of lines.
func (l *list) count() int {
	if l.found != nil {
		return len(l.found)
	}
	return len(l.infos)
}

// at returns the conversation on a line, nil if there is none.
func (l *list) at(line int) *record.ContextInfo {
	switch {
	case line < 0 || line >= l.count():
		return nil
	case l.found != nil:
		return l.infos[l.found[line]]
	}
	return l.infos[line]
}

// listPage is the least number of conversations that are read at once.
const listPage = 64

// wants reads more if the screen needs it.
func (l *list) wants() tea.Cmd {
	seeking := l.sought != (chatctx.ID{})
	if l.busy || l.whole || l.filter.text == "" && !seeking && len(l.infos) > l.top+2*l.height {
		return nil
	}
	l.busy = true
	n := max(listPage, 2*l.height)
	if l.filter.text != "" || seeking {
		n = 4 * listPage
	}
	return func() tea.Msg {
		var msg listMsg
		for range n {
			info, err, ok := l.next()
			if !ok || err != nil {
				msg.whole, msg.err = true, err
				break
			}
			msg.infos = append(msg.infos, info)
		}
		return msg
	}
}

// read adds conversations that were read.
func (l *list) read(msg listMsg) {
	l.busy, l.whole, l.err = false, msg.whole, msg.err
	for _, info := range msg.infos {
		if !l.known[info.ID] {
			l.known[info.ID] = true
			l.infos = append(l.infos, info)
			l.folds = append(l.folds, folded(titleOf(info)))
		}
	}
	l.refilter()
	if l.sought != (chatctx.ID{}) {
		l.seek(l.sought)
	}
}

// index returns the index of a conversation, -1 if it is not in the list.
func (l *list) index(id chatctx.ID) int {
	return slices.IndexFunc(l.infos, func(x *record.ContextInfo) bool { return x.ID == id })
}

// forget removes a conversation from the list until it is read again.
func (l *list) forget(id chatctx.ID) {
	if i := l.index(id); i >= 0 {
		l.infos, l.folds = slices.Delete(l.infos, i, i+1), slices.Delete(l.folds, i, i+1)
		l.refilter()
	}
	delete(l.known, id)
}

// gone removes a conversation from the list for good.
func (l *list) gone(id chatctx.ID) {
	here := l.at(l.cursor)
	l.forget(id)
	l.known[id] = true
	if here != nil {
		l.find(here.ID)
	}
}

// changed updates a conversation: it moves to the place of its last change, or goes if it is in the trash. It ignores information that is older than what is
// known.
func (l *list) changed(info *record.ContextInfo) {
	i := l.index(info.ID)
	if i >= 0 && l.infos[i].Listed > info.Listed {
		return
	}
	here := l.at(l.cursor)
	if i >= 0 {
		l.infos, l.folds = slices.Delete(l.infos, i, i+1), slices.Delete(l.folds, i, i+1)
	}
	l.known[info.ID] = true
	if info.Trashed == 0 {
		i := slices.IndexFunc(l.infos, func(x *record.ContextInfo) bool { return x.Listed <= info.Listed })
		switch {
		case i < 0 && !l.whole:
			delete(l.known, info.ID) // it comes when that part is read
			return
		case i < 0:
			i = len(l.infos)
		}
		l.infos, l.folds = slices.Insert(l.infos, i, info), slices.Insert(l.folds, i, folded(titleOf(info)))
	}
	if info.Current {
		for _, x := range l.infos {
			x.Current = x.ID == info.ID
		}
	}
	l.refilter()
	if here != nil {
		l.find(here.ID)
	}
}

// refilter applies the filter again.
func (l *list) refilter() {
	l.found = nil
	if l.filter.text != "" {
		l.found = filter(l.filter.text, l.folds)
	}
	l.resize(l.count(), l.height)
}

// find puts the cursor on a conversation.
func (l *list) find(id chatctx.ID) {
	for i := range l.count() {
		if l.at(i).ID == id {
			l.to(i)
			return
		}
	}
}

// seek puts the cursor on a conversation, if necessary after it is read.
func (l *list) seek(id chatctx.ID) {
	l.find(id)
	if l.sought = id; l.index(id) >= 0 || l.whole {
		l.sought = chatctx.ID{}
	}
}

// titleOf returns the name of a conversation on one line.
func titleOf(info *record.ContextInfo) string {
	if info.Title == "" {
		return "(no title) " + record.Short(info.ID)
	}
	return info.Title
}
