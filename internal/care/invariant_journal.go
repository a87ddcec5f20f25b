package care

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

func findOwnRecords(c *conversation) error { return c.findRecords(c.id) }

// mendOwnRecords removes damaged records. What was undone by a removed operation cannot be redone.
func mendOwnRecords(c *conversation, found []fault) error {
	if err := removeFound(c.inspection, found); err != nil {
		return err
	}
	c.rec.Redo = slices.DeleteFunc(c.rec.Redo, func(n uint64) bool {
		op, err := base.GetOperation(c.tx, c.id, n)
		return op == nil || err != nil
	})
	return nil
}

// findJournal finds operations about branches without a record, and what the newest operation did not leave as it is.
func findJournal(c *conversation) error {
	there := map[pool.ID]bool{{}: true}
	err := c.tx.Scan(base.OperationBucket, kv.Prefix(c.id[:]), func(key, value []byte) error {
		op := &base.Operation{}
		if len(key) != 24 || stored.Unmarshal(value, op) != nil || op.Expired {
			return nil // findOwnRecords reports it
		}
		for _, link := range op.Chains {
			if there[link.Branch] {
				continue
			}
			raw, err := c.tx.Get(branchstore.Bucket, branchstore.Key(c.id, link.Branch))
			if err != nil {
				return err
			}
			if there[link.Branch] = raw != nil; raw == nil {
				n := binary.BigEndian.Uint64(key[16:])
				c.fault(7, c.where, "the operation %d is about the branch %q (%s), of which there is no record", n, link.Name, link.Branch).key = bytes.Clone(key)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	last, err := lastOperation(c.tx, c.id)
	if err != nil {
		return err
	}
	if last >= max(c.rec.NextOperation, 1) {
		c.fault(7, c.where, "its journal goes on at %d and has the operation %d", c.rec.NextOperation, last)
	}
	return c.eachNewest(func(where, wrong string, _ func()) { c.fault(7, where, "%s", wrong) })
}

// eachNewest calls fn for the conversation and each branch whose newest operation did not lead to its revision. The function that fn gets starts a new history.
func (c *conversation) eachNewest(fn func(where, wrong string, restart func())) error {
	wrong, err := c.newest(c.rec.Newest, pool.ID{}, c.rec.Revision)
	if wrong != "" {
		fn(c.where, wrong, func() { c.rec.Last, c.rec.Newest = 0, 0 })
	}
	for _, b := range c.branches {
		if err != nil {
			return err
		}
		if wrong, err = c.newest(b.Newest, b.ID, b.Revision); wrong != "" {
			fn(c.at(b), wrong, func() { b.Last, b.Newest = 0, 0 })
		}
	}
	return err
}

// newest returns what is wrong where operation n did not lead to a revision of a branch, or of the conversation.
func (c *conversation) newest(n uint64, of pool.ID, revision uint64) (string, error) {
	if n == 0 {
		return "", nil
	}
	op, err := base.GetOperation(c.tx, c.id, n)
	switch {
	case errors.Is(err, kv.ErrDamaged):
		return fmt.Sprintf("its newest operation %d: %v", n, err), nil
	case err != nil:
		return "", err
	case op == nil:
		return fmt.Sprintf("its newest operation %d is not on the journal", n), nil
	}
	for _, link := range op.Chains {
		switch {
		case link.Branch != of:
		case link.Revision != revision:
			return fmt.Sprintf("is at revision %d, its newest operation %d led to %d", revision, n, link.Revision), nil
		default:
			return "", nil
		}
	}
	return fmt.Sprintf("its newest operation %d is not about it", n), nil
}

// mendJournal ends undo for operations about lost branches, and where the newest operation is not known.
func mendJournal(c *conversation, found []fault) error {
	for _, f := range found {
		if f.key == nil {
			continue
		}
		n := binary.BigEndian.Uint64(f.key[16:])
		op, err := base.GetOperation(c.tx, c.id, n)
		if err != nil {
			return err
		}
		if op.Expired {
			continue // of two lost branches
		}
		c.say(7, c.where, "the operation %d is about a branch that is lost: it can no longer be undone", n)
		op.Changes, op.Expired = nil, true
		if err := base.PutRecord(c.rw, base.OperationBucket, f.key, op); err != nil {
			return err
		}
	}
	last, err := lastOperation(c.tx, c.id)
	if err != nil {
		return err
	}
	if last >= max(c.rec.NextOperation, 1) {
		c.say(7, c.where, "its journal goes on after operation %d", last)
		c.rec.NextOperation = last + 1
	}
	return c.eachNewest(func(where, _ string, restart func()) {
		c.say(7, where, "what was done on it before can no longer be undone")
		restart()
	})
}

// findNamed finds names of messages that are not there.
func findNamed(c *conversation) error {
	for bucket, message := range map[string]func(key, value []byte) []byte{
		base.TagBucket:    func(_, value []byte) []byte { return value },
		base.MarkBucket:   func(key, _ []byte) []byte { return key[16:] },
		base.QueuedBucket: func(_, value []byte) []byte { return value },
	} {
		err := c.tx.Scan(bucket, kv.Prefix(c.id[:]), func(key, value []byte) error {
			where, id := fmt.Sprintf("%s %x", bucket, key), message(key, value)
			if len(id) != len(pool.ID{}) {
				c.fault(3, where, "names no message").causedBy(bucket, key)
			} else if _, ok := c.messages[pool.ID(id)]; !ok {
				c.fault(3, where, "names the message %s, which is not there", pool.ID(id)).causedBy(bucket, key)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func removeNamed(c *conversation, found []fault) error { return removeFound(c.inspection, found) }

func findTask(c *conversation) error {
	task := c.rec.Task
	if task == nil {
		return nil
	}
	known := slices.Contains([]string{record.TaskRunning, record.TaskReturned, record.TaskFailed, record.TaskAbandoned}, task.State)
	if c.rec.Parent == (pool.ID{}) || !known || (task.State == record.TaskRunning) != (task.Ended == 0) {
		c.fault(8, c.where, "is a sub-context of %s that is %q, ended %d", c.rec.Parent, task.State, task.Ended)
	}
	return nil
}
