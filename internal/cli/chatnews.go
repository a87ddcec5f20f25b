package cli

import (
	"sync"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// news distinguishes what others put on the branch of a chat from what the chat put there itself.
type news struct {
	mu   sync.Mutex
	own  map[chatctx.ID]bool
	on   spot // the branch for which the following holds
	at   int  // number of messages seen
	busy int  // running commands of the chat, which show themselves what they do
}

// mine records messages of the chat. Those without an id get one.
func (n *news) mine(msgs []*pool.Message) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.own == nil {
		n.own = map[chatctx.ID]bool{}
	}
	for _, m := range msgs {
		if m.ID == (chatctx.ID{}) {
			m.ID = pool.NewID()
		}
		n.own[m.ID] = true
	}
}

// quiet stops the reports until the returned function is called.
func (n *news) quiet() (end func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.busy++
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.busy--
	}
}

// watch starts to report what others add to the branch of the chat.
func (s *chat) watch() error {
	changes, err := s.r.st.Watch(s.r.ctx)
	if err != nil {
		return err
	}
	go func() {
		for c := range changes {
			if c.Context == s.conversation().ID {
				s.catchUp()
			}
		}
	}()
	return nil
}

// catchUp reports what others added, unless something of the chat is under way, which catches up at its end.
func (s *chat) catchUp() {
	s.mu.Lock()
	c, branch, idle := s.context, s.branch, len(s.stops) == 0
	s.mu.Unlock()
	if idle && s.term != nil {
		s.tell(c, branch, false)
	}
}

// seen takes everything on the branch as known.
func (s *chat) seen() {
	s.mu.Lock()
	c, branch := s.context, s.branch
	s.mu.Unlock()
	snap, err := c.Snapshot(s.r.ctx, branch)
	if err != nil {
		return // the error is reported where it matters
	}
	n := &s.news
	n.mu.Lock()
	defer n.mu.Unlock()
	n.on, n.at = spot{c.ID, branch}, snap.Len()
}

// tell shows what others added to a branch of the chat since the last time. talking: an answer of the chat is under way, so results of tools are its own.
func (s *chat) tell(c *chatctx.ChatContext, branch string, talking bool) {
	n := &s.news
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.busy > 0 || n.on != (spot{c.ID, branch}) {
		return
	}
	snap, err := c.Snapshot(s.r.ctx, branch)
	if err != nil || snap.Len() <= n.at {
		if err == nil {
			n.at = snap.Len()
		}
		return
	}
	r := *s.r
	r.con = s.console(s.r.ctx)
	for e, err := range snap.Entries(s.r.ctx, n.at+1, snap.Len()) {
		if err != nil {
			break
		}
		if n.own[e.ID] || e.Hidden || talking && e.Role == pool.ToolRole {
			continue
		}
		r.printMessage(e, "", r.talks.thinking)
	}
	n.at = snap.Len()
	_ = r.con.out.close() // a prompt takes everything
}
