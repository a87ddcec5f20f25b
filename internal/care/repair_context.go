package care

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// mender mends in one transaction and records what it did.
type mender struct {
	tx    kv.RwTx
	store *base.Store
	now   pool.Time
	done  []record.Mended
	where string // the context
}

func (m *mender) say(invariant int, where, format string, args ...any) {
	m.done = append(m.done, record.Mended{Invariant: invariant, Where: where, Text: fmt.Sprintf(format, args...)})
}

// mended is a context under repair.
type mended struct {
	id       pool.ID
	rec      *base.ContextRecord
	messages map[pool.ID]*pool.Message // without contents
	entries  map[uint64]map[uint64]pool.ID
	branches []*branch.Branch
	lost     bool             // a branch's record is gone: what no other branch holds may have been on it
	unsure   map[pool.ID]bool // branches
}

// context makes the invariants of one context hold.
func (m *mender) context(id pool.ID) error {
	c := &mended{id: id, messages: map[pool.ID]*pool.Message{}, entries: map[uint64]map[uint64]pool.ID{}, unsure: map[pool.ID]bool{}}
	m.where = "conversation " + id.String()
	if ghost, err := m.ghost(id); ghost || err != nil {
		return err
	}
	for _, step := range []func(*mended) error{m.record, m.pool, m.readBranches, m.history, m.counts, m.branchRecords, m.recovered, m.journal, m.calls, m.named, m.finish} {
		if err := step(c); err != nil {
			return err
		}
	}
	return nil
}

// ghost removes the data of a context that has no record, messages or branches. It reports whether the context was such a one.
func (m *mender) ghost(id pool.ID) (bool, error) {
	if raw, err := m.tx.Get(base.ContextBucket, id[:]); raw != nil || err != nil {
		return false, err
	}
	for _, bucket := range []string{poolstore.Bucket, branchstore.Bucket} {
		if keys, err := view.KeysWith(m.tx, bucket, id[:]); len(keys) > 0 || err != nil {
			return false, err
		}
	}
	for _, bucket := range OwnBuckets {
		keys, err := view.KeysWith(m.tx, bucket, id[:])
		if err != nil {
			return false, err
		}
		for _, key := range keys {
			m.say(3, fmt.Sprintf("%s %x", bucket, key), "belongs to a conversation that is not there: it is removed")
			if err := m.tx.Delete(bucket, key); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// strayed brings home messages stored under a missing context: it moves each to a context that lacks it, and removes those that a context has.
func (m *mender) strayed(ids []pool.ID) error {
	var real, none []pool.ID
	for _, id := range ids {
		raw, err := m.tx.Get(base.ContextBucket, id[:])
		if err != nil {
			return err
		}
		if raw != nil {
			real = append(real, id)
		} else {
			none = append(none, id)
		}
	}
	for _, from := range none {
		keys, err := view.KeysWith(m.tx, poolstore.Bucket, from[:])
		if err != nil {
			return err
		}
		for _, key := range keys {
			if err := m.bringHome(key, real); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *mender) bringHome(key []byte, real []pool.ID) error {
	value, err := m.tx.Get(poolstore.Bucket, key)
	if err != nil || len(key) != 32 {
		return err
	}
	msg := &pool.Message{}
	if poolstore.Decode(value, msg) != nil || msg.ID != pool.ID(key[16:]) {
		return nil
	}
	for _, id := range real {
		has, err := poolstore.Has(m.tx, id, msg.ID)
		if err != nil {
			return err
		}
		if has {
			m.say(4, "message "+msg.ID.String(), "is in the conversation %s, and once more under one that is not there: that one is removed", id)
			return m.tx.Delete(poolstore.Bucket, key)
		}
	}
	for _, id := range real {
		entry, err := m.tx.Get(branchstore.EntryBucket, branchstore.EntryKey(id, msg.Home.Segment, msg.Home.Position))
		if err != nil {
			return err
		}
		if len(entry) < 17 || pool.ID(entry[:16]) != msg.ID {
			continue
		}
		m.say(1, "message "+msg.ID.String(), "is put back into the conversation %s, which lacks it", id)
		if err := m.tx.Put(poolstore.Bucket, base.Under(id, msg.ID[:]...), bytes.Clone(value)); err != nil {
			return err
		}
		return m.tx.Delete(poolstore.Bucket, key)
	}
	return nil
}

// record reads the context's record, or makes one.
func (m *mender) record(c *mended) error {
	rec, _, err := base.GetContext(m.tx, c.id)
	if err != nil && !errors.Is(err, kv.ErrDamaged) {
		return err
	}
	if rec == nil {
		m.say(3, m.where, "has no record that can be read: it gets one with the title Recovered; settings and app data are lost")
		rec, c.lost = &base.ContextRecord{Title: "Recovered " + record.Short(c.id), Created: m.now, Updated: m.now}, true
	}
	c.rec = rec
	return nil
}

// pool reads the messages. It removes those that cannot be read and puts a note in the place of lost contents.
func (m *mender) pool(c *mended) error {
	bad := map[string]string{}
	changed := map[string]*pool.Message{}
	err := m.tx.Scan(poolstore.Bucket, kv.Prefix(c.id[:]), func(key, value []byte) error {
		msg := &pool.Message{}
		err := poolstore.Decode(value, msg)
		switch {
		case len(key) != 32:
			bad[string(key)] = "has a key that is none"
			return nil
		case err != nil:
			bad[string(key)] = err.Error()
			return nil
		case msg.ID != pool.ID(key[16:]):
			bad[string(key)] = "calls itself " + msg.ID.String()
			return nil
		}
		lost, err := m.lostContents(msg)
		if err != nil {
			return err
		}
		if lost {
			changed[string(key)] = msg
		}
		k := known(msg)
		k.Calls = msg.Calls
		c.messages[msg.ID] = k
		return nil
	})
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(bad)) {
		m.say(1, "message "+idIn(key), "cannot be read (%s): it is removed", strings.TrimPrefix(bad[key], kv.ErrDamaged.Error()+": "))
		if err := m.tx.Delete(poolstore.Bucket, []byte(key)); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(changed)) {
		m.say(6, "message "+changed[key].ID.String(), "a content of it is lost: a word stands in its place")
		raw, err := poolstore.Encode(changed[key])
		if err == nil {
			err = m.tx.Put(poolstore.Bucket, []byte(key), raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lostContents puts a text in the place of missing artifacts. It reports whether it did.
func (m *mender) lostContents(msg *pool.Message) (bool, error) {
	any := false
	gone := func(h pool.Hash) (string, error) {
		if h == (pool.Hash{}) {
			return "", nil
		}
		has, err := poolstore.HasArtifact(m.tx, h)
		if has || err != nil {
			return "", err
		}
		any = true
		return fmt.Sprintf("(lost: the contents %s)", h), nil
	}
	parts := func(parts []pool.Part) error {
		for i := range parts {
			text, err := gone(parts[i].SHA256)
			if err != nil {
				return err
			}
			if text != "" {
				parts[i] = pool.Part{Type: pool.TextPart, Text: text}
			}
		}
		return nil
	}
	for _, a := range maps.Clone(msg.Aside) {
		text, err := gone(a.SHA256)
		if err != nil {
			return any, err
		}
		if text != "" {
			poolstore.Lose(msg, a.SHA256, text)
		}
	}
	if err := parts(msg.Content); err != nil {
		return any, err
	}
	r := msg.Result
	if r == nil {
		return any, nil
	}
	text, err := gone(r.SHA256)
	if err != nil {
		return any, err
	}
	if text != "" {
		r.SHA256, r.Size, r.MediaType, r.JSON, r.Text = pool.Hash{}, 0, "", nil, text
	}
	return any, parts(r.Parts)
}

// readBranches reads the records of branches and removes those that cannot be read.
func (m *mender) readBranches(c *mended) error {
	var bad [][]byte
	err := m.tx.Scan(branchstore.Bucket, kv.Prefix(c.id[:]), func(key, value []byte) error {
		var b *branch.Branch
		err := fmt.Errorf("a key of %d bytes", len(key))
		if len(key) == 32 {
			b, err = branchstore.Decode(pool.ID(key[16:]), value)
		}
		if err != nil || branchstore.CheckName(b.Name) != nil {
			bad = append(bad, bytes.Clone(key))
			return nil
		}
		c.branches = append(c.branches, b)
		return nil
	})
	for _, key := range bad {
		if err == nil {
			m.say(3, m.where, "the record of branch %x cannot be read: what it alone held comes onto the branch %s", key[16:], RecoveredBranch)
			err = m.tx.Delete(branchstore.Bucket, key)
		}
	}
	c.lost = c.lost || len(bad) > 0 || c.living() != int(c.rec.Branches) || c.living() == 0
	return err
}

// needs reports whether a branch has a place in its history, or a lost branch may have had it.
func (c *mended) needs(home pool.Home) bool {
	owned := false
	for _, b := range c.branches {
		if branchstore.Place(b.Pieces, home.Segment, home.Position) >= 0 {
			return true
		}
		owned = owned || b.Segment == home.Segment
	}
	return c.lost && !owned
}

// history reads the entries, removes those that name nothing, and restores those whose message records that it stood there.
func (m *mender) history(c *mended) error {
	var bad [][]byte
	err := m.tx.Scan(branchstore.EntryBucket, kv.Prefix(c.id[:]), func(key, value []byte) error {
		segment, position, ok := branchstore.EntryAt(key)
		if !ok {
			bad = append(bad, bytes.Clone(key))
			return nil
		}
		var mid pool.ID
		copy(mid[:], value)
		if c.entries[segment] == nil {
			c.entries[segment] = map[uint64]pool.ID{}
		}
		c.entries[segment][position] = mid
		return nil
	})
	for _, key := range bad {
		if err == nil {
			m.say(2, m.where, "an entry with a wrong key of %d bytes is removed", len(key))
			err = m.tx.Delete(branchstore.EntryBucket, key)
		}
	}
	if err != nil {
		return err
	}
	at := map[pool.Home]pool.ID{}
	for id, msg := range c.messages {
		if msg.Home.Segment != 0 {
			at[msg.Home] = id
		}
	}
	for home, id := range at {
		had, there := c.entries[home.Segment][home.Position]
		if _, known := c.messages[had]; known || !c.needs(home) {
			continue
		}
		if c.entries[home.Segment] == nil {
			c.entries[home.Segment] = map[uint64]pool.ID{}
		}
		c.entries[home.Segment][home.Position] = id
		m.say(1, "message "+id.String(), "is put back where it stood, at %d of segment %d%s", home.Position, home.Segment, map[bool]string{true: ", in the place of a name that nothing has"}[there && had != pool.ID{}])
	}
	for segment, entries := range c.entries {
		for position, id := range entries {
			if _, known := c.messages[id]; !known && id != (pool.ID{}) {
				m.say(1, m.where, "the entry %d of segment %d names a message that is not there: it names none now", position, segment)
				entries[position] = pool.ID{}
			}
		}
	}
	return nil
}

// counts rewrites wrong entries. An entry without a message keeps its count if that is possible.
func (m *mender) counts(c *mended) error {
	for _, segment := range slices.Sorted(maps.Keys(c.entries)) {
		entries := c.entries[segment]
		turns, changed, gap := uint64(0), 0, false
		last := ^uint64(0)
		for _, position := range slices.Sorted(maps.Keys(entries)) {
			key := branchstore.EntryKey(c.id, segment, position)
			old, err := m.tx.Get(branchstore.EntryBucket, key)
			if err != nil {
				return err
			}
			gap = position != last+1
			turns = c.turns(entries[position], old, turns, gap)
			last = position
			id := entries[position]
			value := binary.AppendUvarint(bytes.Clone(id[:]), turns)
			if bytes.Equal(old, value) {
				continue
			}
			changed++
			if err := m.tx.Put(branchstore.EntryBucket, key, value); err != nil {
				return err
			}
		}
		if changed > 0 {
			m.say(2, m.where, "written anew: %s of segment %d", plural.Count(changed, "entry"), segment)
		}
	}
	return nil
}

// turns returns the count of a message's entry after one with the count before. After a gap it takes the entry's own count if that is higher.
func (c *mended) turns(id pool.ID, old []byte, before uint64, gap bool) uint64 {
	var was uint64
	if len(old) > 16 {
		was, _ = binary.Uvarint(old[16:])
	}
	msg := c.messages[id]
	switch {
	case gap && was >= before && was < before+1<<32:
		return was
	case msg != nil && branchstore.ItemOf(msg).Turn:
		return before + 1
	case msg == nil && was == before+1:
		return was
	}
	return before
}

// branchRecords reduces histories to what exists and makes the branches' records fit.
func (m *mender) branchRecords(c *mended) error {
	owners := map[uint64]bool{}
	for _, b := range c.branches {
		where := fmt.Sprintf("%s, branch %q", m.where, b.Name)
		before, err := branchstore.Encode(b)
		if err != nil {
			return err
		}
		if pieces := c.whole(b.Pieces); !branchstore.Same(pieces, b.Pieces) {
			m.say(2, where, "of %s %d cannot be found: its history continues without them", plural.Count(branchstore.Len(b), "message"), branchstore.Len(b)-branchstore.Count(pieces))
			b.Pieces, b.Sessions = pieces, nil
		}
		end := c.end(b.Segment)
		switch {
		case owners[b.Segment] || end == 0 && b.Segment != 0:
			m.say(2, where, "gets a segment of its own to write to")
			b.Segment, b.High = 0, 0
		case b.High != end:
			m.say(2, where, "writes at %d of its segment, not at %d", end, b.High)
			b.High = end
		}
		owners[b.Segment] = b.Segment != 0
		if err := m.prompts(c, b, where); err != nil {
			return err
		}
		m.sessions(c, b, where)
		after, err := branchstore.Encode(b)
		if err != nil {
			return err
		}
		if !bytes.Equal(before, after) {
			c.unsure[b.ID] = true
			b.Revision++
		}
	}
	return nil
}

// whole returns the pieces without the places that have no message.
func (c *mended) whole(pieces []branch.Piece) []branch.Piece {
	var out []branch.Piece
	for _, p := range pieces {
		for at := p.From; at < p.To; at++ {
			if id, ok := c.entries[p.Segment][at]; ok && id != (pool.ID{}) {
				out = branchstore.Join(out, branch.Piece{Segment: p.Segment, From: at, To: at + 1})
			} else if !ok && at-p.From > uint64(len(c.entries[p.Segment])) {
				break // the piece is longer than all entries of the segment
			}
		}
	}
	return out
}

// end returns the position after a segment's last entry.
func (c *mended) end(segment uint64) uint64 {
	var end uint64
	for position := range c.entries[segment] {
		end = max(end, position+1)
	}
	return end
}

func (m *mender) prompts(c *mended, b *branch.Branch, where string) error {
	for _, p := range []*string{&b.System, &b.Prompt} {
		text, err := branchstore.Prompt(m.tx, c.id, *p)
		switch {
		case errors.Is(err, kv.ErrDamaged):
			m.say(3, where, "its prompt %s is lost: it has none now", *p)
			*p = ""
		case err != nil:
			return err
		case branchstore.PromptID(text) != *p:
			m.say(3, where, "its prompt %s has another text than was stored: it is kept as it is now", *p)
			if *p, err = branchstore.PutPrompt(m.tx, c.id, strings.ToValidUTF8(text, "\uFFFD")); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *mender) sessions(c *mended, b *branch.Branch, where string) {
	for i, s := range b.Sessions {
		if _, ok := c.messages[s.Summary]; !ok && s.Summary != (pool.ID{}) {
			m.say(1, where, "the summary of a session is lost: it is open again")
			b.Sessions = b.Sessions[:i]
			return
		}
	}
}

// recovered makes a branch of messages that have lost their place.
func (m *mender) recovered(c *mended) error {
	var pieces []branch.Piece
	if c.lost {
		for _, segment := range slices.Sorted(maps.Keys(c.entries)) {
			for _, position := range slices.Sorted(maps.Keys(c.entries[segment])) {
				home := pool.Home{Segment: segment, Position: position}
				if c.entries[segment][position] != (pool.ID{}) && c.needs(home) && !c.held(home) {
					pieces = branchstore.Join(pieces, branch.Piece{Segment: segment, From: position, To: position + 1})
				}
			}
		}
	}
	if len(pieces) == 0 && c.living() > 0 {
		return nil
	}
	b := &branch.Branch{ID: pool.NewID(), Name: c.free(RecoveredBranch), Pieces: pieces, Created: m.now}
	m.say(3, m.where, "messages that have lost their place are on the branch %s: %d", b.Name, branchstore.Count(pieces))
	c.branches = append(c.branches, b)
	c.unsure[b.ID] = true
	return nil
}

// living counts the branches that are not removed.
func (c *mended) living() int {
	n := 0
	for _, b := range c.branches {
		if b.Removed == 0 {
			n++
		}
	}
	return n
}

// free returns name if no branch has it, or else name with the first free number.
func (c *mended) free(name string) string {
	next := name
	for i := 2; slices.ContainsFunc(c.branches, func(b *branch.Branch) bool { return b.Removed == 0 && b.Name == next }); i++ {
		next = fmt.Sprintf("%s.%d", name, i)
	}
	return next
}

func (c *mended) held(home pool.Home) bool {
	return slices.ContainsFunc(c.branches, func(b *branch.Branch) bool { return branchstore.Place(b.Pieces, home.Segment, home.Position) >= 0 })
}

// idIn returns the message's id in a key of the pool, as ids are written elsewhere.
func idIn(key string) string {
	if len(key) != 2*len(pool.ID{}) {
		return fmt.Sprintf("%x", key[min(len(pool.ID{}), len(key)):])
	}
	return pool.ID([]byte(key[len(pool.ID{}):])).String()
}
