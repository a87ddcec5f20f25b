package view

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// Reader finds messages in a transaction. During a change, Named and Each return the branches as the change has made them; if they are nil, the stored ones
// are read.
type Reader struct {
	Tx    kv.Tx
	ID    pool.ID
	Named func(name string) (*branch.Branch, error) // returns nil if no branch has that name
	Each  func(func(*branch.Branch) error) error
}

func (r Reader) named(name string) (*branch.Branch, error) {
	if r.Named != nil {
		return r.Named(name)
	}
	return branchstore.Find(r.Tx, r.ID, name)
}

func (r Reader) each(fn func(*branch.Branch) error) error {
	if r.Each != nil {
		return r.Each(fn)
	}
	return branchstore.List(r.Tx, r.ID, fn)
}

// Find resolves a reference to a message and its position on the branch, 0 if the branch does not hold it.
func (r Reader) Find(b *branch.Branch, ref record.Ref) (pool.ID, int, error) {
	p, err := r.resolve(b, string(ref))
	if err != nil {
		return p.id, 0, err
	}
	if p.on != nil && p.on.ID == b.ID {
		return p.id, p.pos, nil
	}
	pos, err := r.placeOf(b, p.id)
	return p.id, pos, err
}

// Locate resolves a reference to a message and a branch that holds it: b if possible, else the branch that the reference names, else the first one. on is
// nil if no branch holds it.
func (r Reader) Locate(b *branch.Branch, ref record.Ref) (id pool.ID, on *branch.Branch, pos int, err error) {
	p, err := r.resolve(b, string(ref))
	if err != nil {
		return p.id, nil, 0, err
	}
	if pos, err = r.placeOf(b, p.id); pos > 0 || err != nil {
		return p.id, b, pos, err
	}
	if p.on != nil {
		return p.id, p.on, p.pos, nil
	}
	err = r.each(func(other *branch.Branch) error {
		at, err := r.placeOf(other, p.id)
		if err == nil && at > 0 && (on == nil || other.Created < on.Created || other.Created == on.Created && other.Name < on.Name) {
			on, pos = other, at
		}
		return err
	})
	return p.id, on, pos, err
}

// LocateThere is like Locate, except that a reference with a branch's name counts on that branch alone, even if b also holds the message.
func (r Reader) LocateThere(b *branch.Branch, ref record.Ref) (on *branch.Branch, pos int, err error) {
	p, err := r.resolve(b, string(ref))
	if err != nil || p.on != nil {
		return p.on, p.pos, err
	}
	id, on, pos, err := r.Locate(b, ref)
	if err == nil && on == nil {
		err = base.NotFound("branch with the message", record.Short(id))
	}
	return on, pos, err
}

// TurnOf returns the turn of the message at a position: the positions of the user's message that begins it, 0 if there is none, and of its last message.
func (r Reader) TurnOf(b *branch.Branch, pos int) (begins, ends int, err error) {
	turn, err := branchstore.Turns(r.Tx, r.ID, b.Pieces, pos)
	if err != nil {
		return 0, 0, err
	}
	if begins, err = r.turnBegins(b, turn); err != nil {
		return 0, 0, err
	}
	next, err := r.turnBegins(b, turn+1)
	return begins, next - 1, err
}

// Elsewhere returns the error for a message that is not on the branch where a command needs it. It names the branch that has it.
func (r Reader) Elsewhere(b *branch.Branch, ref record.Ref) error {
	id, on, _, err := r.Locate(b, ref)
	if err != nil {
		return err
	}
	if on == nil {
		return base.NotFoundSince("message", record.Short(id), "branch %q does not hold it", b.Name)
	}
	return base.OnAnother(record.Short(id), b.Name, on.Name)
}

// Range resolves A..B to a branch and the positions of the first message after A and of B. If nothing lies between them, to < from. ok is false if the
// reference is no range. A need not be on B's branch: if it is on another, the range begins where B's branch leaves A's history. A range without B ends at
// the head of A's branch, which is the one that A names, if it names one.
func (r Reader) Range(b *branch.Branch, ref record.Ref) (on *branch.Branch, from, to int, ok bool, err error) {
	left, right, ok := strings.Cut(string(ref), "..")
	if !ok {
		return nil, 0, 0, false, nil
	}
	if whole, err := r.isName(string(ref)); whole || err != nil {
		return nil, 0, 0, false, err
	}
	on, to = b, branchstore.Len(b)
	if right == "" && left != "" {
		if on, from, err = r.LocateThere(b, record.Ref(left)); err != nil {
			return nil, 0, 0, true, err
		}
		return on, from + 1, branchstore.Len(on), true, nil
	}
	if right != "" {
		id, at, pos, err := r.Locate(b, record.Ref(right))
		if err != nil {
			return nil, 0, 0, true, err
		}
		if at == nil {
			return nil, 0, 0, true, base.NotFound("branch with the message", record.Short(id))
		}
		on, to = at, pos
	}
	if left != "" {
		id, at, pos, err := r.Locate(on, record.Ref(left))
		switch {
		case err != nil:
			return nil, 0, 0, true, err
		case at == nil:
			return nil, 0, 0, true, base.NotFound("branch with the message", record.Short(id))
		}
		if from = pos; at.ID != on.ID {
			from, err = branchstore.Shared(r.Tx, r.ID, branchstore.Slice(at.Pieces, 0, pos), on.Pieces)
		}
		if err != nil {
			return nil, 0, 0, true, err
		}
	}
	return on, from + 1, to, true, nil
}

// isName reports whether a tag or a branch has this name.
func (r Reader) isName(s string) (bool, error) {
	tag, err := r.tag(s)
	if tag != nil || err != nil {
		return tag != nil, err
	}
	b, err := r.named(s)
	return b != nil, err
}

// place is what a reference names. on is the branch that the reference itself names, with the position there; nil for tags and ids.
type place struct {
	id   pool.ID
	on   *branch.Branch
	pos  int
	sure string // an unambiguous way to write it
}

// resolve finds what a reference names, read on branch b.
func (r Reader) resolve(b *branch.Branch, s string) (place, error) {
	if s == "" {
		return place{}, base.NotFound("message", "")
	}
	if s[0] == '@' {
		return r.onward(b, s[1:], s)
	}
	if kind, rest, ok := strings.Cut(s, ":"); ok {
		var found []place
		var err error
		switch kind {
		case "tag":
			found, err = r.byTag(rest)
		case "branch":
			found, err = r.byBranch(rest)
		case "id":
			found, err = r.byID(b, rest)
		default:
			return r.any(b, s)
		}
		if err != nil || len(found) > 0 {
			return r.only(s, found, err)
		}
	}
	return r.any(b, s)
}

// any tries each way to read a reference: as a tag, branch, label or id.
func (r Reader) any(b *branch.Branch, s string) (place, error) {
	var found []place
	for _, by := range []func() ([]place, error){
		func() ([]place, error) { return r.byTag(s) },
		func() ([]place, error) { return r.byBranch(s) },
		func() ([]place, error) { return r.byLabel(b, s) },
		func() ([]place, error) { return r.byID(b, s) },
	} {
		more, err := by()
		if err != nil {
			return place{}, err
		}
		found = append(found, more...)
	}
	return r.only(s, found, nil)
}

// only returns the one message that all of found name, or an error if they differ.
func (r Reader) only(s string, found []place, err error) (place, error) {
	if err != nil {
		return place{}, err
	}
	if len(found) == 0 {
		return place{}, base.NotFound("message", s)
	}
	same := true
	for _, p := range found[1:] {
		same = same && p.id == found[0].id
	}
	if same {
		return found[0], nil
	}
	words := make([]string, 0, MaxCandidates)
	for _, p := range found[:min(len(found), MaxCandidates)] {
		words = append(words, r.describe(p))
	}
	return place{}, base.Ambiguous("message", s, words, len(found)-len(words))
}

func (r Reader) tag(name string) ([]byte, error) {
	return r.Tx.Get(base.TagBucket, base.Under(r.ID, []byte(name)...))
}

func (r Reader) byTag(name string) ([]place, error) {
	tag, err := r.tag(name)
	if tag == nil || err != nil {
		return nil, err
	}
	return []place{{id: pool.ID(tag), sure: "tag:" + name}}, nil
}

// byBranch reads BRANCH, which means its head, and BRANCH@…. A branch's name may contain an @.
func (r Reader) byBranch(s string) ([]place, error) {
	var found []place
	b, err := r.named(s)
	if err != nil {
		return nil, err
	}
	if b != nil {
		p, err := r.onward(b, "", s)
		if err != nil {
			return nil, err
		}
		found = append(found, p)
	}
	at := strings.LastIndexByte(s, '@')
	if at < 1 {
		return found, nil
	}
	if b, err = r.named(s[:at]); b == nil || err != nil {
		return found, err
	}
	p, err := r.onward(b, s[at+1:], s)
	if err != nil {
		return nil, err
	}
	return append(found, p), nil
}

// onward reads what follows an @: nothing, 3, -2 or the label of a turn.
func (r Reader) onward(b *branch.Branch, rest, whole string) (place, error) {
	n := branchstore.Len(b)
	pos, ok := n, true
	if rest != "" {
		count, err := strconv.ParseUint(strings.TrimPrefix(rest, "-"), 10, strconv.IntSize-1) // no + or second -
		ok = err == nil
		if pos = int(count); rest[0] == '-' {
			pos = n - pos
		}
	}
	if !ok {
		if branchstore.IsLabel(rest) {
			found, err := r.byLabel(b, rest)
			return r.only(whole, found, err)
		}
		return place{}, base.Invalidf("%q names no message: @ is the head, @-2 two before it, @3 the third message, ..@3 all up to it", whole)
	}
	if pos < 1 || pos > n {
		return place{}, base.NotFoundSince("message", whole, "branch %q has %s", b.Name, plural.Count(n, "message"))
	}
	id, err := branchstore.IDAt(r.Tx, r.ID, b.Pieces, pos-1)
	return place{id, b, pos, "branch:" + b.Name + "@" + strconv.Itoa(pos)}, err
}

// byLabel reads the label of a turn on a branch: u3 is the message that begins the turn, a3 the last one that answers it.
func (r Reader) byLabel(b *branch.Branch, s string) ([]place, error) {
	if !branchstore.IsLabel(s) {
		return nil, nil
	}
	turn, err := strconv.Atoi(s[1:])
	if err != nil {
		return nil, nil
	}
	begins, err := r.turnBegins(b, turn)
	if err != nil || begins > branchstore.Len(b) {
		return nil, err
	}
	pos := begins
	if s[0] == 'a' {
		next, err := r.turnBegins(b, turn+1)
		if err != nil || next-1 <= begins {
			return nil, err
		}
		pos = next - 1
	}
	if pos < 1 {
		return nil, nil
	}
	id, err := branchstore.IDAt(r.Tx, r.ID, b.Pieces, pos-1)
	return []place{{id, b, pos, "branch:" + b.Name + "@" + s}}, err
}

// turnBegins returns the position at which a turn begins, from 1. It returns Len+1 if there are fewer turns, and 0 for turn 0, the messages before the
// first turn.
func (r Reader) turnBegins(b *branch.Branch, turn int) (int, error) {
	if turn == 0 {
		return 0, nil
	}
	var failed error
	pos := sort.Search(branchstore.Len(b), func(i int) bool {
		n, err := branchstore.Turns(r.Tx, r.ID, b.Pieces, i+1)
		if err != nil {
			failed = err
		}
		return n >= turn
	})
	return pos + 1, failed
}

// byID reads an id or a part of one.
func (r Reader) byID(b *branch.Branch, s string) ([]place, error) {
	if id, err := uuid.Parse(s); err == nil && len(s) == 36 {
		has, err := poolstore.Has(r.Tx, r.ID, id)
		if err != nil || !has {
			return nil, err
		}
		return []place{{id: id, sure: "id:" + s}}, nil
	}
	digits := IdDigits(s)
	if digits == "" {
		return nil, nil
	}
	ids, err := r.matching(digits)
	if err != nil {
		return nil, err
	}
	if len(ids) > 1 {
		if id, ok, err := r.onBranch(b, ids); ok || err != nil {
			return []place{{id: id, sure: "id:" + id.String()}}, err
		}
	}
	found := make([]place, len(ids))
	for i, id := range ids {
		found[i] = place{id: id, sure: "id:" + id.String()}
	}
	return found, nil
}

// matching returns the messages of the context whose ids begin or end with digits. It reads the entries, which hold little but ids.
func (r Reader) matching(digits string) ([]pool.ID, error) {
	seen := map[pool.ID]bool{}
	var found []pool.ID
	add := func(id pool.ID) {
		if !seen[id] {
			seen[id] = true
			found = append(found, id)
		}
	}
	err := r.Tx.Scan(branchstore.EntryBucket, kv.Prefix(r.ID[:]), func(_, value []byte) error {
		if len(value) >= 16 && Matches(pool.ID(value[:16]), digits) {
			add(pool.ID(value[:16]))
		}
		return nil
	})
	if err != nil || len(found) > 0 {
		return found, err
	}
	err = r.Tx.Scan(poolstore.Bucket, kv.Prefix(r.ID[:]), func(key, _ []byte) error {
		if id := pool.ID(key[16:]); Matches(id, digits) {
			add(id)
		}
		return nil
	})
	return found, err
}

// onBranch chooses the one message of several that the branch holds.
func (r Reader) onBranch(b *branch.Branch, found []pool.ID) (pool.ID, bool, error) {
	var held []pool.ID
	for _, id := range found {
		pos, err := r.placeOf(b, id)
		if err != nil {
			return pool.ID{}, false, err
		}
		if pos > 0 {
			held = append(held, id)
		}
	}
	if len(held) == 1 {
		return held[0], true, nil
	}
	return pool.ID{}, false, nil
}

// describe returns an unambiguous reference to a place and the beginning of its message.
func (r Reader) describe(p place) string {
	m, err := poolstore.Get(r.Tx, r.ID, p.id)
	if err != nil || m == nil {
		return p.sure
	}
	return fmt.Sprintf("%s (%s: %s)", p.sure, m.Role, TitleFrom(m.Text()))
}

// placeOf returns a message's position on a branch, from 1, or 0 if it is not there. If the branch holds the message's home, that takes one read; else it
// reads the ids.
func (r Reader) placeOf(b *branch.Branch, id pool.ID) (int, error) {
	home, err := poolstore.HomeOf(r.Tx, r.ID, id)
	if err != nil {
		return 0, err
	}
	if home == nil {
		return 0, base.NotFound("message", id.String())
	}
	return r.stands(b, id, home)
}

// StandsAt is placeOf for a message that was read already.
func (r Reader) StandsAt(b *branch.Branch, m *pool.Message) (int, error) {
	return r.stands(b, m.ID, &m.Home)
}

func (r Reader) stands(b *branch.Branch, id pool.ID, home *pool.Home) (int, error) {
	if i := branchstore.Place(b.Pieces, home.Segment, home.Position); i >= 0 && home.Segment > 0 {
		return i + 1, nil
	}
	pos := 0
	err := branchstore.Read(r.Tx, r.ID, b.Pieces, func(i int, at pool.ID) error {
		if at == id {
			pos = i + 1
			return kv.ErrStop
		}
		return nil
	})
	return pos, err
}
