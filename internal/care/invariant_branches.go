package care

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/pool"
)

// at names a branch.
func (c *conversation) at(b *branch.Branch) string {
	return fmt.Sprintf("%s, branch %q", c.where, b.Name)
}

// findBranches reads the branches.
func findBranches(c *conversation) error {
	c.branches = nil
	err := c.tx.Scan(branchstore.Bucket, kv.Prefix(c.id[:]), func(key, value []byte) error {
		if len(key) != 32 {
			c.fault(3, c.where, "has a branch with a key of %d bytes", len(key)).causedBy(branchstore.Bucket, key)
			return nil
		}
		b, err := branchstore.Decode(pool.ID(key[16:]), value)
		if err == nil {
			err = branchstore.CheckName(b.Name)
		}
		if err != nil {
			c.fault(3, fmt.Sprintf("%s, branch %s", c.where, pool.ID(key[16:])), "%v", err).causedBy(branchstore.Bucket, key).then = "it is removed, and what it alone held comes onto the branch " + RecoveredBranch
			return nil
		}
		c.branches = append(c.branches, b)
		return nil
	})
	living := len(c.living())
	c.lost = living == 0 || living != int(c.rec.Branches)
	return err
}

func mendBranches(c *conversation, found []fault) error {
	c.lost = true
	return removeFound(c.inspection, found)
}

// living returns the branches that are not removed.
func (c *conversation) living() (living []*branch.Branch) {
	for _, b := range c.branches {
		if b.Removed == 0 {
			living = append(living, b)
		}
	}
	return living
}

// holds reports whether one of the branches has a place in its history.
func holds(branches []*branch.Branch, home pool.Home) bool {
	return slices.ContainsFunc(branches, func(b *branch.Branch) bool { return branchstore.Place(b.Pieces, home.Segment, home.Position) >= 0 })
}

// orphaned reports whether only a lost branch may have had a place.
func (c *conversation) orphaned(home pool.Home) bool {
	return c.lost && !holds(c.branches, home) && !slices.ContainsFunc(c.branches, func(b *branch.Branch) bool { return b.Segment == home.Segment })
}

// place is an entry that names a message.
type place struct {
	position uint64
	message  pool.ID
}

// findHistories reads the entries, and looks whether the branches' pieces have one at each place.
func findHistories(c *conversation) error {
	if err := c.readEntries(); err != nil {
		return err
	}
	for _, b := range c.branches {
		for _, p := range b.Pieces {
			if len(c.within(p)) != int(p.To-p.From) || p.From >= p.To {
				c.fault(2, c.at(b), "has the piece %d to %d of segment %d, where entries are missing (it ends at %d)", p.From, p.To, p.Segment, c.ends[p.Segment])
			}
		}
	}
	return nil
}

// within returns the places of a piece.
func (c *conversation) within(p branch.Piece) []place {
	all := c.places[p.Segment]
	order := func(e place, at uint64) int { return cmp.Compare(e.position, at) }
	from, _ := slices.BinarySearchFunc(all, p.From, order)
	to, _ := slices.BinarySearchFunc(all, p.To, order)
	return all[from:max(from, to)]
}

func (c *conversation) readEntries() error {
	c.places, c.ends = map[uint64][]place{}, map[uint64]uint64{}
	var count turnCount
	return c.tx.Scan(branchstore.EntryBucket, kv.Prefix(c.id[:]), func(key, value []byte) error {
		segment, position, ok := branchstore.EntryAt(key)
		if !ok {
			c.fault(2, c.where, "has an entry with a wrong key of %d bytes", len(key)).causedBy(branchstore.EntryBucket, key)
			return nil
		}
		where := fmt.Sprintf("%s, segment %d, entry %d", c.where, segment, position)
		if len(value) < 17 {
			c.fault(1, where, "is cut short")
			return nil
		}
		if segment != count.segment || position != count.next {
			count = turnCount{segment: segment, unsure: position > 0}
		}
		count.next = position + 1
		c.ends[segment] = position + 1
		id := pool.ID(value[:16])
		m, there := c.messages[id]
		if text := count.wrong(value, m); text != "" {
			c.fault(2, where, "%s", text)
		}
		if id == (pool.ID{}) { // gc took the message: the entry only counts turns
			return nil
		}
		if !there {
			c.fault(1, where, "names the message %s, which is not there", id)
		}
		c.places[segment] = append(c.places[segment], place{position, id})
		return nil
	})
}

// turnCount follows the counts of turns along a segment.
type turnCount struct {
	segment, next uint64
	turns         uint64
	unsure        bool // the count before is not known
}

// wrong returns the fault of the next entry's count, "" for none. m is the entry's message, nil if that is not known.
func (t *turnCount) wrong(value []byte, m *pool.Message) string {
	turns, n := binary.Uvarint(value[16:])
	if n <= 0 || 16+n != len(value) {
		t.unsure = true
		return "has no count of turns"
	}
	want := t.turns
	if m != nil && branchstore.ItemOf(m).Turn {
		want++
	}
	was, unsure := t.turns, t.unsure
	t.turns, t.unsure = turns, false
	switch {
	case unsure:
		return ""
	case m == nil && (turns == was || turns == was+1): // gc took the message
		return ""
	case m == nil || turns != want:
		return fmt.Sprintf("counts %d turns, there are %d", turns, want)
	}
	return ""
}

// mendHistories removes entries that are none, restores those whose message records that it stood there, and takes out of the histories what cannot be found.
func mendHistories(c *conversation, found []fault) error {
	if err := removeFound(c.inspection, found); err != nil {
		return err
	}
	entries, err := c.allEntries()
	if err != nil {
		return err
	}
	c.putBack(entries)
	if err := c.writeEntries(entries); err != nil {
		return err
	}
	if err := c.readEntries(); err != nil {
		return err
	}
	for _, b := range c.branches {
		var pieces []branch.Piece
		for _, p := range b.Pieces {
			for _, e := range c.within(p) {
				pieces = branchstore.Join(pieces, branch.Piece{Segment: p.Segment, From: e.position, To: e.position + 1})
			}
		}
		if slices.Equal(pieces, b.Pieces) {
			continue
		}
		if gone := branchstore.Len(b) - branchstore.Count(pieces); gone > 0 {
			c.say(2, c.at(b), "of %s %d cannot be found: its history continues without them", plural.Count(branchstore.Len(b), "message"), gone)
			b.Sessions = nil
			b.Revision++
		} else if slices.ContainsFunc(b.Pieces, func(p branch.Piece) bool { return p.From >= p.To }) {
			c.say(2, c.at(b), "pieces without a message are taken out of its history")
		}
		b.Pieces = pieces
	}
	return nil
}

// allEntries reads the names in the entries by segment and position. A cut one names none.
func (c *conversation) allEntries() (map[uint64]map[uint64]pool.ID, error) {
	entries := map[uint64]map[uint64]pool.ID{}
	return entries, c.tx.Scan(branchstore.EntryBucket, kv.Prefix(c.id[:]), func(key, value []byte) error {
		var id pool.ID
		copy(id[:], value)
		segment, position, _ := branchstore.EntryAt(key)
		put(entries, pool.Home{Segment: segment, Position: position}, id)
		return nil
	})
}

func put(entries map[uint64]map[uint64]pool.ID, home pool.Home, id pool.ID) {
	if entries[home.Segment] == nil {
		entries[home.Segment] = map[uint64]pool.ID{}
	}
	entries[home.Segment][home.Position] = id
}

// putBack lets entries name the messages that record that they stood there, and none in the place of those that are not there.
func (c *conversation) putBack(entries map[uint64]map[uint64]pool.ID) {
	for id, m := range c.messages {
		home := m.Home
		had, there := entries[home.Segment][home.Position]
		if _, known := c.messages[had]; known || home.Segment == 0 || !c.orphaned(home) && !holds(c.branches, home) {
			continue
		}
		put(entries, home, id)
		c.say(1, "message "+id.String(), "is put back where it stood, at %d of segment %d%s", home.Position, home.Segment, map[bool]string{true: ", in the place of a name that nothing has"}[there && had != pool.ID{}])
	}
	for segment, all := range entries {
		for position, id := range all {
			if _, known := c.messages[id]; !known && id != (pool.ID{}) {
				c.say(1, c.where, "the entry %d of segment %d names a message that is not there: it names none now", position, segment)
				all[position] = pool.ID{}
			}
		}
	}
}

// writeEntries rewrites wrong entries. An entry without a message keeps its count if that is possible.
func (c *conversation) writeEntries(entries map[uint64]map[uint64]pool.ID) error {
	for _, segment := range slices.Sorted(maps.Keys(entries)) {
		turns, changed := uint64(0), 0
		last := ^uint64(0)
		for _, position := range slices.Sorted(maps.Keys(entries[segment])) {
			id := entries[segment][position]
			key := branchstore.EntryKey(c.id, segment, position)
			old, err := c.tx.Get(branchstore.EntryBucket, key)
			if err != nil {
				return err
			}
			turns = c.turns(id, old, turns, position != last+1)
			last = position
			value := binary.AppendUvarint(bytes.Clone(id[:]), turns)
			if bytes.Equal(old, value) {
				continue
			}
			changed++
			if err := c.rw.Put(branchstore.EntryBucket, key, value); err != nil {
				return err
			}
		}
		if changed > 0 {
			c.say(2, c.where, "written anew: %s of segment %d", plural.Count(changed, "entry"), segment)
		}
	}
	return nil
}

// turns returns the count of a message's entry after one with the count before. After a gap it takes the entry's own count if that is higher.
func (c *conversation) turns(id pool.ID, old []byte, before uint64, gap bool) uint64 {
	var was uint64
	if len(old) > 16 {
		was, _ = binary.Uvarint(old[16:])
	}
	m := c.messages[id]
	switch {
	case gap && was >= before && was < before+1<<32:
		return was
	case m != nil && branchstore.ItemOf(m).Turn:
		return before + 1
	case m == nil && was == before+1:
		return was
	}
	return before
}

func findWriters(c *conversation) error {
	owners := map[uint64]string{}
	for _, b := range c.branches {
		if b.Segment == 0 {
			continue
		}
		if other, ok := owners[b.Segment]; ok {
			c.fault(2, c.at(b), "writes to the segment %d of branch %q", b.Segment, other)
		}
		owners[b.Segment] = b.Name
		if b.High != c.ends[b.Segment] {
			c.fault(2, c.at(b), "writes at %d of segment %d, which has %d entries", b.High, b.Segment, c.ends[b.Segment])
		}
	}
	return nil
}

func mendWriters(c *conversation, _ []fault) error {
	owned := map[uint64]bool{}
	for _, b := range c.branches {
		end := c.ends[b.Segment]
		switch {
		case owned[b.Segment] || end == 0 && b.Segment != 0:
			c.say(2, c.at(b), "gets a segment of its own to write to")
			b.Segment, b.High = 0, 0
			b.Revision++
		case b.High != end:
			c.say(2, c.at(b), "writes at %d of its segment, not at %d", end, b.High)
			b.High = end
			b.Revision++
		}
		owned[b.Segment] = b.Segment != 0
	}
	return nil
}

// eachPrompt calls fn for each prompt of a branch.
func (c *conversation) eachPrompt(fn func(b *branch.Branch, id *string) error) error {
	for _, b := range c.branches {
		for _, id := range []*string{&b.System, &b.Prompt} {
			if err := fn(b, id); err != nil {
				return err
			}
		}
	}
	return nil
}

func findPrompts(c *conversation) error {
	return c.eachPrompt(func(b *branch.Branch, id *string) error {
		text, err := branchstore.Prompt(c.tx, c.id, *id)
		switch {
		case errors.Is(err, kv.ErrDamaged):
			c.fault(3, c.at(b), "%v", err)
		case err != nil:
			return err
		case branchstore.PromptID(text) != *id:
			c.fault(3, c.at(b), "the text of its prompt %s is not the one that was stored", *id)
		}
		return nil
	})
}

func mendPrompts(c *conversation, _ []fault) error {
	return c.eachPrompt(func(b *branch.Branch, id *string) error {
		text, err := branchstore.Prompt(c.tx, c.id, *id)
		switch {
		case err != nil:
			c.say(3, c.at(b), "its prompt %s is lost: it has none now", *id)
			*id = ""
		case branchstore.PromptID(text) == *id:
			return nil
		default:
			c.say(3, c.at(b), "its prompt %s has another text than was stored: it is kept as it is now", *id)
			if *id, err = branchstore.PutPrompt(c.rw, c.id, strings.ToValidUTF8(text, "\uFFFD")); err != nil {
				return err
			}
		}
		b.Revision++
		return nil
	})
}

// isLost reports whether the summary of a session is not there.
func (c *conversation) isLost(s branch.Session) bool {
	_, there := c.messages[s.Summary]
	return !there && s.Summary != pool.ID{}
}

func findSummaries(c *conversation) error {
	for _, b := range c.branches {
		for _, s := range b.Sessions {
			if c.isLost(s) {
				c.fault(1, c.at(b), "the summary %s of a session is not there", s.Summary)
			}
		}
	}
	return nil
}

func mendSummaries(c *conversation, _ []fault) error {
	for _, b := range c.branches {
		if i := slices.IndexFunc(b.Sessions, c.isLost); i >= 0 {
			c.say(1, c.at(b), "the summary of a session is lost: it is open again")
			b.Sessions = b.Sessions[:i]
			b.Revision++
		}
	}
	return nil
}

func findActive(c *conversation) error {
	living := c.living()
	if !slices.ContainsFunc(living, func(b *branch.Branch) bool { return b.ID == c.rec.Active }) {
		c.fault(3, c.where, "its active branch %s is not there", c.rec.Active)
	}
	if len(living) != int(c.rec.Branches) {
		c.fault(3, c.where, "counts %s, there are %d", plural.Count(int(c.rec.Branches), "branch"), len(living))
	} else if c.lost && c.rw != nil {
		c.fault(3, c.where, "has lost a branch that was removed")
	}
	return nil
}

// mendActive makes a branch of messages that have lost their place, and an active one of those that there are: main, else the first.
func mendActive(c *conversation, _ []fault) error {
	c.gatherLost()
	living := c.living()
	if !slices.ContainsFunc(living, func(b *branch.Branch) bool { return b.ID == c.rec.Active }) {
		to := living[max(slices.IndexFunc(living, func(b *branch.Branch) bool { return b.Name == base.MainBranch }), 0)]
		c.say(3, c.where, "its active branch %s is not there: it is %q now", c.rec.Active, to.Name)
		c.rec.Active = to.ID
	}
	if len(living) != int(c.rec.Branches) {
		c.say(3, c.where, "has %s, and counted %d", plural.Count(len(living), "branch"), c.rec.Branches)
		c.rec.Branches = uint64(len(living))
	}
	return nil
}

// gatherLost makes a branch of messages that have lost their place.
func (c *conversation) gatherLost() {
	var pieces []branch.Piece
	for _, segment := range slices.Sorted(maps.Keys(c.places)) {
		for _, e := range c.places[segment] {
			if c.orphaned(pool.Home{Segment: segment, Position: e.position}) {
				pieces = branchstore.Join(pieces, branch.Piece{Segment: segment, From: e.position, To: e.position + 1})
			}
		}
	}
	if len(pieces) == 0 && len(c.living()) > 0 {
		return
	}
	b := &branch.Branch{ID: pool.NewID(), Name: c.freeName(RecoveredBranch), Pieces: pieces, Created: c.store.Now()}
	c.say(3, c.where, "messages that have lost their place are on the branch %s: %d", b.Name, branchstore.Count(pieces))
	c.branches = append(c.branches, b)
}

// freeName returns name if no branch has it, or else name with the first free number.
func (c *conversation) freeName(name string) string {
	next := name
	for i := 2; slices.ContainsFunc(c.living(), func(b *branch.Branch) bool { return b.Name == next }); i++ {
		next = fmt.Sprintf("%s.%d", name, i)
	}
	return next
}

func findNames(c *conversation) error {
	names, led := map[pool.ID]string{}, map[pool.ID]bool{}
	for _, b := range c.living() {
		names[b.ID] = b.Name
	}
	err := c.tx.Scan(branchstore.NameBucket, kv.Prefix(c.id[:]), func(key, value []byte) error {
		name := string(key[16:])
		if len(value) == 16 && names[pool.ID(value)] == name {
			led[pool.ID(value)] = true
		} else {
			c.fault(11, c.where, "the branch name %q leads to %x, which is not called so", name, value).causedBy(branchstore.NameBucket, key)
		}
		return nil
	})
	for id, name := range names {
		if !led[id] {
			c.fault(11, c.where, "the name of branch %q (%s) does not lead to it", name, id)
		}
	}
	return err
}

// mendNames rebuilds the index of names from the branches' records. Of two branches with one name the later one gets a number.
func mendNames(c *conversation, found []fault) error {
	if err := removeFound(c.inspection, found); err != nil {
		return err
	}
	slices.SortStableFunc(c.branches, func(a, b *branch.Branch) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), bytes.Compare(a.ID[:], b.ID[:]))
	})
	taken := map[string]bool{}
	for _, b := range c.living() {
		if taken[b.Name] {
			name := c.freeName(b.Name)
			c.say(11, c.where, "a second branch is called %q: its name is %q now", b.Name, name)
			b.Name = name
			b.Revision++
		}
		taken[b.Name] = true
		to, err := branchstore.Lookup(c.tx, c.id, b.Name)
		if err == nil && to == b.ID {
			continue
		}
		c.say(11, c.where, "the name %q leads to its branch again", b.Name)
		if err := branchstore.PutName(c.rw, c.id, b.Name, b.ID); err != nil {
			return err
		}
	}
	return nil
}
