package view

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
	"github.com/google/uuid"
)

// maxCandidates bounds the list that an ambiguous reference gets back.
const MaxCandidates = 20

// currentContext is the store's current context, the zero id for none.
func CurrentContext(tx kv.Tx) (pool.ID, error) {
	raw, err := tx.Get(record.MetaBucket, record.MetaCurrent)
	if err != nil || len(raw) != 16 {
		return pool.ID{}, err
	}
	return pool.ID(raw), nil
}

// resolveContext finds a context, in the trash or not: by title first, then by id, prefix or ending. A title in the trash does not stand in the way of the
// same title outside.
func ResolveContext(tx kv.Tx, ref string) (pool.ID, error) { return ResolveContextIn(tx, ref, false) }

// resolveContextIn is resolveContext that prefers, among contexts of one title, those in the trash or those outside.
func ResolveContextIn(tx kv.Tx, ref string, trash bool) (pool.ID, error) {
	if ref == "" {
		id, err := CurrentContext(tx)
		if err == nil && id == (pool.ID{}) {
			err = record.NotFound("current context: chatctx new makes one, chatctx use chooses one of", "chatctx ls")
		}
		return id, err
	}
	if id, err := uuid.Parse(ref); err == nil && len(ref) == 36 {
		raw, err := tx.Get(record.ContextBucket, id[:])
		if err == nil && raw == nil {
			err = record.NotFound("context", ref)
		}
		return id, err
	}
	var preferred, titled, named candidates
	digits := IdDigits(ref)
	err := tx.Scan(record.ContextBucket, kv.Range{}, func(key, value []byte) error {
		id := pool.ID(key)
		rec, err := record.DecodeContext(id, value)
		switch {
		case err != nil:
			return err
		case rec.Title == ref && (rec.Trashed != 0) == trash:
			preferred.add(id, rec)
		case rec.Title == ref:
			titled.add(id, rec)
		case digits != "" && Matches(id, digits):
			named.add(id, rec)
		}
		return nil
	})
	if err != nil {
		return pool.ID{}, err
	}
	for _, found := range []candidates{preferred, titled, named} {
		switch len(found.ids) {
		case 0:
		case 1:
			return found.ids[0], nil
		default:
			return pool.ID{}, record.Ambiguous("context", ref, found.words)
		}
	}
	return pool.ID{}, record.NotFound("context", ref)
}

// candidates are contexts that a reference could mean, with a word on each of the first.
type candidates struct {
	ids   []pool.ID
	words []string
}

func (c *candidates) add(id pool.ID, rec *record.ContextRecord) {
	c.ids = append(c.ids, id)
	if len(c.words) == MaxCandidates {
		return
	}
	word := rec.Title
	if rec.Trashed != 0 {
		word += ", in the trash"
	}
	c.words = append(c.words, fmt.Sprintf("%s (%s)", id, word))
}

// idDigits gives the hex digits of a reference that can be a part of an id, "" where it cannot.
func IdDigits(ref string) string {
	digits := strings.ToLower(strings.ReplaceAll(ref, "-", ""))
	if len(digits) < 4 || len(digits) > 32 {
		return ""
	}
	for _, r := range digits {
		if !strings.ContainsRune("0123456789abcdef", r) {
			return ""
		}
	}
	return digits
}

func Matches(id pool.ID, digits string) bool {
	var buf [32]byte
	hex.Encode(buf[:], id[:])
	return strings.HasPrefix(string(buf[:]), digits) || strings.HasSuffix(string(buf[:]), digits)
}

// reader finds messages in a transaction.
type Reader struct {
	Tx kv.Tx
	ID pool.ID
}

// find resolves a reference: the message and its position on the branch, 0 where the branch does not hold it.
func (r Reader) Find(b *branch.Branch, ref record.Ref) (pool.ID, int, error) {
	s := string(ref)
	if s == "" {
		return pool.ID{}, 0, record.NotFound("message", "")
	}
	if s[0] == '@' {
		return r.findPlace(b, s)
	}
	id, err := r.findID(b, s)
	if err != nil {
		return id, 0, err
	}
	pos, err := r.placeOf(b, id)
	return id, pos, err
}

func (r Reader) findPlace(b *branch.Branch, s string) (pool.ID, int, error) {
	n, pos := b.Len(), 0
	switch rest := s[1:]; {
	case rest == "":
		pos = n
	case rest[0] == '-':
		back, err := strconv.Atoi(rest[1:])
		if err != nil || back < 0 {
			return pool.ID{}, 0, record.Invalidf("the reference %q: @-2 is two before the head", s)
		}
		pos = n - back
	default:
		at, err := strconv.Atoi(rest)
		if err != nil || at < 0 {
			return pool.ID{}, 0, record.Invalidf("the reference %q: @ is the head, @3 the third message", s)
		}
		pos = at
	}
	if pos < 1 || pos > n {
		return pool.ID{}, 0, record.NotFound(fmt.Sprintf("message (branch %q has %d)", b.Name, n), s)
	}
	id, err := branch.IDAt(r.Tx, r.ID, b.Pieces, pos-1)
	return id, pos, err
}

// findID finds a message by tag, id, prefix or ending.
func (r Reader) findID(b *branch.Branch, s string) (pool.ID, error) {
	tag, err := r.Tx.Get(record.TagBucket, record.Under(r.ID, []byte(s)...))
	if err != nil {
		return pool.ID{}, err
	}
	if tag != nil {
		return pool.ID(tag), nil
	}
	if id, err := uuid.Parse(s); err == nil && len(s) == 36 {
		has, err := pool.Has(r.Tx, r.ID, id)
		if err == nil && !has {
			err = record.NotFound("message", s)
		}
		return id, err
	}
	digits := IdDigits(s)
	if digits == "" {
		return pool.ID{}, record.NotFound("message", s)
	}
	found, err := r.matching(digits)
	if err != nil {
		return pool.ID{}, err
	}
	switch len(found) {
	case 0:
		return pool.ID{}, record.NotFound("message", s)
	case 1:
		return found[0], nil
	}
	if id, ok, err := r.onBranch(b, found); ok || err != nil {
		return id, err
	}
	words := make([]string, 0, min(len(found), MaxCandidates))
	for _, id := range found[:min(len(found), MaxCandidates)] {
		words = append(words, r.describe(id))
	}
	return pool.ID{}, record.Ambiguous("message", s, words)
}

// matching gives the messages of the context whose id begins or ends with digits. It reads the entries, which hold little but the ids.
func (r Reader) matching(digits string) ([]pool.ID, error) {
	seen := map[pool.ID]bool{}
	var found []pool.ID
	add := func(id pool.ID) {
		if !seen[id] {
			seen[id] = true
			found = append(found, id)
		}
	}
	err := r.Tx.Scan(branch.EntryBucket, kv.Prefix(r.ID[:]), func(_, value []byte) error {
		if len(value) >= 16 && Matches(pool.ID(value[:16]), digits) {
			add(pool.ID(value[:16]))
		}
		return nil
	})
	if err != nil || len(found) > 0 {
		return found, err
	}
	err = r.Tx.Scan(pool.Bucket, kv.Prefix(r.ID[:]), func(key, _ []byte) error {
		if id := pool.ID(key[16:]); Matches(id, digits) {
			add(id)
		}
		return nil
	})
	return found, err
}

// onBranch picks the one of several that the branch holds.
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

func (r Reader) describe(id pool.ID) string {
	m, err := pool.Get(r.Tx, r.ID, id)
	if err != nil || m == nil {
		return id.String()
	}
	return fmt.Sprintf("%s (%s: %s)", id, m.Role, TitleFrom(m.Text()))
}

// placeOf is a message's position on a branch, from 1, or 0. Where a message stands at its home, that costs one read; else the ids are read.
func (r Reader) placeOf(b *branch.Branch, id pool.ID) (int, error) {
	m, err := pool.Get(r.Tx, r.ID, id)
	if err != nil {
		return 0, err
	}
	if m == nil {
		return 0, record.NotFound("message", id.String())
	}
	return r.StandsAt(b, m)
}

// standsAt is placeOf for a message that was read.
func (r Reader) StandsAt(b *branch.Branch, m *pool.Message) (int, error) {
	if i := branch.Place(b.Pieces, m.Home.Segment, m.Home.Position); i >= 0 && m.Home.Segment > 0 {
		return i + 1, nil
	}
	pos := 0
	err := branch.Read(r.Tx, r.ID, b.Pieces, func(i int, at pool.ID) error {
		if at == m.ID {
			pos = i + 1
			return kv.ErrStop
		}
		return nil
	})
	return pos, err
}

// TitleFrom makes a title of the first line of a text: at most 60 characters, no control characters. "" where nothing is left.
func TitleFrom(text string) string {
	line := strings.TrimSpace(text)
	if i := strings.IndexAny(line, "\r\n"); i >= 0 {
		line = line[:i]
	}
	line = strings.Join(strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if utf8.RuneCountInString(line) <= 60 {
		return line
	}
	runes := []rune(line)[:59]
	return strings.TrimRightFunc(string(runes), unicode.IsSpace) + "…"
}

// checkTitle says why a context cannot have this title.
func CheckTitle(title string) error {
	if len(title) > 1024 || !utf8.ValidString(title) || strings.ContainsFunc(title, unicode.IsControl) {
		return record.Invalidf("a title is UTF-8 of at most 1024 bytes without control characters")
	}
	return nil
}
