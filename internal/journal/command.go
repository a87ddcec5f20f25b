package journal

import (
	"context"
	"sync"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/pool"
)

// Command ties what a program does on one branch in one go into a group: a question, its answers, and what becomes of their calls. Where somebody else did
// something between them on the branch, a new group begins, since an undo never reaches past what is not its own. It locks itself; a nil Command ties nothing.
type Command struct {
	mu      sync.Mutex // also held while something is stored as the command's
	context pool.ID
	branch  pool.ID
	// group has the operations so far without anything else on the branch in between; last is the newest of them. next is the group of what is being
	// stored: it replaces group only once something was stored.
	group, next *Group
	last        uint64
}

// On sets the branch, before the command is used.
func (c *Command) On(context, branch pool.ID) {
	if c != nil {
		c.context, c.branch = context, branch
	}
}

// Within makes what follows on the branch a part of a group.
func (c *Command) Within(g *Group) {
	if c == nil || g == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.group, c.last = g, g.Begun(c.context).first
}

// Store calls store, which stores an operation of the command: it calls Join in its transaction.
func (c *Command) Store(store func() error) error {
	if c == nil {
		return store()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = nil
	return store()
}

// Join makes an operation on the branch a part of the command.
func (c *Command) Join(t *Txn) {
	if c == nil {
		return
	}
	if c.next = nil; t.Target == nil || t.ID != c.context || t.Target.ID != c.branch {
		return
	}
	if c.next = c.group; c.next == nil || t.Target.Last != c.last && !c.follows(t) {
		c.next = NewGroup()
	}
	c.next.Join(t)
	t.command, t.ours = c, t.Target.Last
}

// follows reports whether the last operation on the branch is a part of the same command.
func (c *Command) follows(t *Txn) bool {
	first := c.group.Begun(c.context).first
	if first == 0 {
		return false
	}
	op, err := base.GetOperation(t.Tx, t.ID, t.Target.Last)
	return err == nil && op != nil && op.Group == first
}

// stored records an operation that joined the command, while the command is locked or nobody else has it yet.
func (c *Command) stored(done *record.Committed) {
	if c != nil && c.next != nil {
		c.group, c.last = c.next, OperationNumber(done.Operation)
	}
}

// Asked says that the answer to what somebody asked meanwhile follows, which is a command of its own.
func (c *Command) Asked() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.group = nil
}

type commandKey struct{}

// InCommand returns a context for what is done in the course of a command.
func InCommand(ctx context.Context, c *Command) context.Context {
	return context.WithValue(ctx, commandKey{}, c)
}

// CommandOf returns the command that InCommand put into a context, nil if there is none.
func CommandOf(ctx context.Context) *Command {
	c, _ := ctx.Value(commandKey{}).(*Command)
	return c
}
