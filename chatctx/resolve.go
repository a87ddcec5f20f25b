package chatctx

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Ref names a message on a branch: its id, a unique prefix or ending (4 or more) of that, a tag, @ (the head), @-2 (two before
// the head), @3 (the third from the start).
type Ref string

// RefTo is the reference to an id.
func RefTo(id ID) Ref { return Ref(id.String()) }

// Short is how an id is shown: its last 8 hex digits. Ids made within a second share their beginning.
func Short(id ID) string { return hex.EncodeToString(id[12:]) }

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", kv.ErrDamaged, fmt.Sprintf(format, args...))
}

// maxCandidates bounds the list that an ambiguous reference gets back.
const maxCandidates = 20

// currentContext is the store's current context, the zero id for none.
func currentContext(tx kv.Tx) (ID, error) {
	raw, err := tx.Get(metaBucket, metaCurrent)
	if err != nil || len(raw) != 16 {
		return ID{}, err
	}
	return ID(raw), nil
}

// resolveContext finds a context, in the trash or not: by title first, then by id, prefix or ending. A title in the trash does not stand in the way of the
// same title outside.
func resolveContext(tx kv.Tx, ref string) (ID, error) { return resolveContextIn(tx, ref, false) }

// resolveContextIn is resolveContext that prefers, among contexts of one title, those in the trash or those outside.
func resolveContextIn(tx kv.Tx, ref string, trash bool) (ID, error) {
	if ref == "" {
		id, err := currentContext(tx)
		if err == nil && id == (ID{}) {
			err = NotFound("current context: chatctx new makes one, chatctx use chooses one of", "chatctx ls")
		}
		return id, err
	}
	if id, err := uuid.Parse(ref); err == nil && len(ref) == 36 {
		raw, err := tx.Get(contextBucket, id[:])
		if err == nil && raw == nil {
			err = NotFound("context", ref)
		}
		return id, err
	}
	var preferred, titled, named candidates
	digits := idDigits(ref)
	err := tx.Scan(contextBucket, kv.Range{}, func(key, value []byte) error {
		id := ID(key)
		rec, err := decodeContext(id, value)
		switch {
		case err != nil:
			return err
		case rec.Title == ref && (rec.Trashed != 0) == trash:
			preferred.add(id, rec)
		case rec.Title == ref:
			titled.add(id, rec)
		case digits != "" && matches(id, digits):
			named.add(id, rec)
		}
		return nil
	})
	if err != nil {
		return ID{}, err
	}
	for _, found := range []candidates{preferred, titled, named} {
		switch len(found.ids) {
		case 0:
		case 1:
			return found.ids[0], nil
		default:
			return ID{}, Ambiguous("context", ref, found.words)
		}
	}
	return ID{}, NotFound("context", ref)
}

// candidates are contexts that a reference could mean, with a word on each of the first.
type candidates struct {
	ids   []ID
	words []string
}

func (c *candidates) add(id ID, rec *contextRecord) {
	c.ids = append(c.ids, id)
	if len(c.words) == maxCandidates {
		return
	}
	word := rec.Title
	if rec.Trashed != 0 {
		word += ", in the trash"
	}
	c.words = append(c.words, fmt.Sprintf("%s (%s)", id, word))
}

// idDigits gives the hex digits of a reference that can be a part of an id, "" where it cannot.
func idDigits(ref string) string {
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

func matches(id ID, digits string) bool {
	var buf [32]byte
	hex.Encode(buf[:], id[:])
	return strings.HasPrefix(string(buf[:]), digits) || strings.HasSuffix(string(buf[:]), digits)
}

// reader finds messages in a transaction.
type reader struct {
	tx kv.Tx
	id ID
}

func (t *txn) reader() reader { return reader{tx: t.tx, id: t.id} }

// position is the place on a branch, from 1, of the message that ref names there.
func (t *txn) position(b *branch.Branch, ref Ref) (int, error) {
	id, pos, err := t.reader().find(b, ref)
	if err == nil && pos == 0 {
		err = NotFound(fmt.Sprintf("message on branch %q:", b.Name), Short(id))
	}
	return pos, err
}

// message is the id of the message that ref names, on the branch or elsewhere in the context.
func (t *txn) message(b *branch.Branch, ref Ref) (ID, error) {
	id, _, err := t.reader().find(b, ref)
	return id, err
}

// find resolves a reference: the message and its position on the branch, 0 where the branch does not hold it.
func (r reader) find(b *branch.Branch, ref Ref) (ID, int, error) {
	s := string(ref)
	if s == "" {
		return ID{}, 0, NotFound("message", "")
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

func (r reader) findPlace(b *branch.Branch, s string) (ID, int, error) {
	n, pos := b.Len(), 0
	switch rest := s[1:]; {
	case rest == "":
		pos = n
	case rest[0] == '-':
		back, err := strconv.Atoi(rest[1:])
		if err != nil || back < 0 {
			return ID{}, 0, invalid("the reference %q: @-2 is two before the head", s)
		}
		pos = n - back
	default:
		at, err := strconv.Atoi(rest)
		if err != nil || at < 0 {
			return ID{}, 0, invalid("the reference %q: @ is the head, @3 the third message", s)
		}
		pos = at
	}
	if pos < 1 || pos > n {
		return ID{}, 0, NotFound(fmt.Sprintf("message (branch %q has %d)", b.Name, n), s)
	}
	id, err := branch.IDAt(r.tx, r.id, b.Pieces, pos-1)
	return id, pos, err
}

// findID finds a message by tag, id, prefix or ending.
func (r reader) findID(b *branch.Branch, s string) (ID, error) {
	tag, err := r.tx.Get(tagBucket, under(r.id, []byte(s)...))
	if err != nil {
		return ID{}, err
	}
	if tag != nil {
		return ID(tag), nil
	}
	if id, err := uuid.Parse(s); err == nil && len(s) == 36 {
		has, err := pool.Has(r.tx, r.id, id)
		if err == nil && !has {
			err = NotFound("message", s)
		}
		return id, err
	}
	digits := idDigits(s)
	if digits == "" {
		return ID{}, NotFound("message", s)
	}
	found, err := r.matching(digits)
	if err != nil {
		return ID{}, err
	}
	switch len(found) {
	case 0:
		return ID{}, NotFound("message", s)
	case 1:
		return found[0], nil
	}
	if id, ok, err := r.onBranch(b, found); ok || err != nil {
		return id, err
	}
	words := make([]string, 0, min(len(found), maxCandidates))
	for _, id := range found[:min(len(found), maxCandidates)] {
		words = append(words, r.describe(id))
	}
	return ID{}, Ambiguous("message", s, words)
}

// matching gives the messages of the context whose id begins or ends with digits. It reads the entries, which hold little but the ids.
func (r reader) matching(digits string) ([]ID, error) {
	seen := map[ID]bool{}
	var found []ID
	add := func(id ID) {
		if !seen[id] {
			seen[id] = true
			found = append(found, id)
		}
	}
	err := r.tx.Scan(branch.EntryBucket, kv.Prefix(r.id[:]), func(_, value []byte) error {
		if len(value) >= 16 && matches(ID(value[:16]), digits) {
			add(ID(value[:16]))
		}
		return nil
	})
	if err != nil || len(found) > 0 {
		return found, err
	}
	err = r.tx.Scan(pool.Bucket, kv.Prefix(r.id[:]), func(key, _ []byte) error {
		if id := ID(key[16:]); matches(id, digits) {
			add(id)
		}
		return nil
	})
	return found, err
}

// onBranch picks the one of several that the branch holds.
func (r reader) onBranch(b *branch.Branch, found []ID) (ID, bool, error) {
	var held []ID
	for _, id := range found {
		pos, err := r.placeOf(b, id)
		if err != nil {
			return ID{}, false, err
		}
		if pos > 0 {
			held = append(held, id)
		}
	}
	if len(held) == 1 {
		return held[0], true, nil
	}
	return ID{}, false, nil
}

func (r reader) describe(id ID) string {
	m, err := pool.Get(r.tx, r.id, id)
	if err != nil || m == nil {
		return id.String()
	}
	return fmt.Sprintf("%s (%s: %s)", id, m.Role, TitleFrom(m.Text()))
}

// placeOf is a message's position on a branch, from 1, or 0. Where a message stands at its home, that costs one read; else the ids are read.
func (r reader) placeOf(b *branch.Branch, id ID) (int, error) {
	m, err := pool.Get(r.tx, r.id, id)
	if err != nil {
		return 0, err
	}
	if m == nil {
		return 0, NotFound("message", id.String())
	}
	return r.standsAt(b, m)
}

// standsAt is placeOf for a message that was read.
func (r reader) standsAt(b *branch.Branch, m *Message) (int, error) {
	if i := branch.Place(b.Pieces, m.Home.Segment, m.Home.Position); i >= 0 && m.Home.Segment > 0 {
		return i + 1, nil
	}
	pos := 0
	err := branch.Read(r.tx, r.id, b.Pieces, func(i int, at ID) error {
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
func checkTitle(title string) error {
	if len(title) > 1024 || !utf8.ValidString(title) || strings.ContainsFunc(title, unicode.IsControl) {
		return invalid("a title is UTF-8 of at most 1024 bytes without control characters")
	}
	return nil
}
