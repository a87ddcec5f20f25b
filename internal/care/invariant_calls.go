package care

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/pool"
)

// storedCall is the record of a call that its message has.
type storedCall struct {
	*record.CallRecord
	key     []byte
	message pool.ID
	index   int
}

func (s *storedCall) name() string { return callName(s.message, s.index) }

// callName names a call as references do: by its number in the message, from 1.
func callName(message pool.ID, index int) string { return fmt.Sprintf("call %s:%d", message, index+1) }

// put stores the record of a call as it was mended.
func (c *conversation) putCall(s *storedCall) error {
	return base.PutRecord(c.rw, base.CallBucket, s.key, s.CallRecord)
}

// findCalls reads the records of calls.
func findCalls(c *conversation) error {
	c.calls = nil
	has := map[string]bool{}
	err := c.tx.Scan(base.CallBucket, kv.Prefix(c.id[:]), func(key, value []byte) error {
		if len(key) != 34 {
			c.fault(5, fmt.Sprintf("call %x", key), "has a key of %d bytes", len(key)).causedBy(base.CallBucket, key)
			return nil
		}
		s := &storedCall{key: bytes.Clone(key)}
		s.message, s.index = base.CallOfKey(key)
		has[string(key)] = true
		var err error
		if s.CallRecord, err = base.DecodeCall(key, value); err != nil {
			c.fault(5, s.name(), "%v", err).causedBy(base.CallBucket, key)
		} else if m := c.messages[s.message]; m == nil || s.index >= len(m.Calls) {
			c.fault(5, s.name(), "its message has no such call").causedBy(base.CallBucket, key)
		} else {
			c.calls = append(c.calls, s)
		}
		return nil
	})
	for id, m := range c.messages {
		if m == nil || m.Home == (pool.Home{}) {
			continue
		}
		for i := range m.Calls {
			if m.Calls[i].Open() && !has[string(base.CallKey(c.id, id, i))] {
				c.fault(5, callName(id, i), "waits and has no record").key = base.CallKey(c.id, id, i)
			}
		}
	}
	return err
}

// mendCalls gives a waiting call without a record one that fits its message.
func mendCalls(c *conversation, found []fault) error {
	if err := removeFound(c.inspection, found); err != nil {
		return err
	}
	for _, f := range found {
		if len(f.key) != 34 {
			continue
		}
		message, index := base.CallOfKey(f.key)
		m := c.messages[message]
		if m == nil || index >= len(m.Calls) || !m.Calls[index].Open() || m.Home == (pool.Home{}) {
			continue
		}
		call := &m.Calls[index]
		s := &storedCall{&record.CallRecord{CallID: call.ID, Tool: call.Tool, Status: pool.Pending, Execution: pool.NotRun, Since: c.store.Now(), Home: m.Home}, f.key, message, index}
		c.calls = append(c.calls, s)
		c.say(5, s.name(), "has lost what was decided: it waits again")
		if err := c.putCall(s); err != nil {
			return err
		}
	}
	return nil
}

func findClaims(c *conversation) error {
	claims := map[string]bool{}
	err := c.tx.Scan(base.ClaimBucket, kv.Prefix(c.id[:]), func(key, _ []byte) error {
		if len(key) == 34 { // others are of branches
			claims[string(key)] = true
		}
		return nil
	})
	for _, s := range c.calls {
		if runs := s.Execution == pool.Running; runs != claims[string(s.key)] {
			f := c.fault(5, s.name(), "is %s, and claimed: %t", base.StateOf(s.CallRecord), !runs)
			if !runs {
				f.causedBy(base.ClaimBucket, s.key).then = "the claim is removed"
			}
		}
		delete(claims, string(s.key))
	}
	for _, key := range slices.Sorted(maps.Keys(claims)) {
		message, index := base.CallOfKey([]byte(key))
		c.fault(5, callName(message, index), "is claimed and has no record").causedBy(base.ClaimBucket, []byte(key))
	}
	return err
}

// mendClaims removes the claims of calls that do not run. A running call without a claim becomes uncertain.
func mendClaims(c *conversation, found []fault) error {
	if err := removeFound(c.inspection, found); err != nil {
		return err
	}
	for _, s := range c.calls {
		claim, err := c.tx.Get(base.ClaimBucket, s.key)
		if err != nil {
			return err
		}
		if claim != nil || s.Execution != pool.Running {
			continue
		}
		from := base.StateOf(s.CallRecord)
		s.Execution = pool.Uncertain
		by := c.store.Program
		s.Decisions = append(s.Decisions, record.Decision{At: c.store.Now(), From: from, To: base.StateOf(s.CallRecord), Decider: pool.Decider{Kind: record.ByProgram, Name: by}, Program: by, Reason: "repair: nobody runs it"})
		c.say(5, s.name(), "nobody runs it: it is %s", base.StateOf(s.CallRecord))
		if err := c.putCall(s); err != nil {
			return err
		}
	}
	return nil
}

// misfits calls fn for each thing in a call's record that does not fit, with what makes it fit.
func (c *conversation) misfits(s *storedCall, fn func(wrong string, fit func())) {
	for i := range s.Decisions {
		next := base.StateOf(s.CallRecord)
		if i+1 < len(s.Decisions) {
			next = s.Decisions[i+1].From
		}
		if to := s.Decisions[i].To; to != next {
			fn(fmt.Sprintf("its step %d leads to %s, and it goes on at %s", i+1, to, next), func() { s.Decisions[i].To = next })
		}
	}
	if home := c.messages[s.message].Home; s.Home != home {
		fn(fmt.Sprintf("stands at %d of segment %d, its message at %d of %d", s.Home.Position, s.Home.Segment, home.Position, home.Segment), func() { s.Home = home })
	}
	if s.Result == (pool.ID{}) {
		return
	}
	if _, there := c.messages[s.Result]; !there {
		fn(fmt.Sprintf("its result %s is not there", s.Result), func() { s.Result = pool.ID{} })
	} else if onBranch := holds(c.living(), s.Home); base.IsOpen(s.CallRecord) || onBranch {
		fn(fmt.Sprintf("is %s, on a branch: %t, and its result waits for a branch", base.StateOf(s.CallRecord), onBranch), func() { s.Result = pool.ID{} })
	}
}

func findCallFit(c *conversation) error {
	for _, s := range c.calls {
		c.misfits(s, func(wrong string, _ func()) { c.fault(5, s.name(), "%s", wrong) })
	}
	return nil
}

func mendCallFit(c *conversation, _ []fault) error {
	for _, s := range c.calls {
		changed := false
		c.misfits(s, func(_ string, fit func()) { fit(); changed = true })
		if !changed {
			continue
		}
		c.say(5, s.name(), "its record is made to fit: it is %s", base.StateOf(s.CallRecord))
		if err := c.putCall(s); err != nil {
			return err
		}
	}
	return nil
}

// callList is a list of a conversation's calls, made of their records.
type callList struct {
	bucket  string
	missing func(s *storedCall) string // what is wrong with a call that is not in the list
	stray   string                     // and with what is in it besides
	entry   func(c *conversation, s *storedCall) (key, value []byte)
}

var callLists = []callList{
	{base.UnansweredBucket, func(s *storedCall) string {
		return fmt.Sprintf("is %s, and among the unanswered: false", base.StateOf(s.CallRecord))
	}, "is among the unanswered and does not belong there", func(c *conversation, s *storedCall) (key, value []byte) {
		if !base.IsListed(s.CallRecord) {
			return nil, nil
		}
		return base.UnansweredKey(c.id, s.Home, s.index), append(s.message[:], s.CallID...)
	}},
	{base.CallIDBucket, func(s *storedCall) string { return fmt.Sprintf("is not to be found by its id %q", s.CallID) }, "is in the index by ids and has no record", func(c *conversation, s *storedCall) (key, value []byte) {
		return base.CallIDKey(c.id, s.CallID, s.key[16:]...), []byte{}
	}},
}

// eachListed calls fn for each record of the lists that has to be there or to be gone. value is nil for one that has to be gone.
func (c *conversation) eachListed(fn func(bucket string, key, value []byte, where, wrong string)) error {
	for _, l := range callLists {
		want := map[string]*storedCall{}
		for _, s := range c.calls {
			if key, _ := l.entry(c, s); key != nil {
				want[string(key)] = s
			}
		}
		err := c.tx.Scan(l.bucket, kv.Prefix(c.id[:]), func(key, value []byte) error {
			s := want[string(key)]
			if s == nil {
				fn(l.bucket, bytes.Clone(key), nil, fmt.Sprintf("%s %x", l.bucket, key), l.stray)
			} else if _, v := l.entry(c, s); bytes.Equal(v, value) {
				delete(want, string(key))
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			s := want[key]
			_, value := l.entry(c, s)
			fn(l.bucket, []byte(key), value, s.name(), l.missing(s))
		}
	}
	for _, s := range c.calls {
		key := base.OpenKey(s.CallRecord, c.id, s.message, s.index)
		open, err := c.tx.Get(base.OpenBucket, key)
		if err != nil {
			return err
		}
		at := base.HomeBytes(s.Home)
		switch wanted := base.IsOpen(s.CallRecord) && (base.IsApart(s.CallRecord) || holds(c.living(), s.Home)); {
		case wanted != (open != nil):
			if !wanted {
				at = nil
			}
			fn(base.OpenBucket, key, at, s.name(), fmt.Sprintf("is %s, and in the list of open calls: %t", base.StateOf(s.CallRecord), open != nil))
		case wanted && !bytes.Equal(open, at):
			fn(base.OpenBucket, key, at, s.name(), "is listed as open at another place than it stands")
		}
	}
	return nil
}

func findCallLists(c *conversation) error {
	return c.eachListed(func(_ string, _, _ []byte, where, wrong string) { c.fault(5, where, "%s", wrong) })
}

func mendCallLists(c *conversation, _ []fault) error {
	type entry struct {
		bucket     string
		key, value []byte
	}
	var wrong []entry
	if err := c.eachListed(func(bucket string, key, value []byte, _, _ string) { wrong = append(wrong, entry{bucket, key, value}) }); err != nil {
		return err
	}
	c.say(5, c.where, "the lists of its calls that wait are made anew")
	for _, e := range wrong {
		err := c.rw.Delete(e.bucket, e.key)
		if err == nil && e.value != nil {
			err = c.rw.Put(e.bucket, e.key, e.value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
