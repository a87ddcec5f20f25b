package branchstore

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// The buckets of this package.
const (
	Bucket       = "branch"     // context, branch id: the record
	NameBucket   = "branchname" // context, name: id of the branch that has it
	EntryBucket  = "entry"      // context, segment, position: message id, count of turns
	PromptBucket = "prompt"     // context, prompt id: text
)

// nameError says why a name is not allowed. It is a pool.ErrInvalid.
type nameError struct{ text string }

func (e *nameError) Error() string { return e.text }
func (e *nameError) Unwrap() error { return pool.ErrInvalid }

func badName(format string, args ...any) error { return &nameError{fmt.Sprintf(format, args...)} }

// CheckName returns an error if a branch or a tag cannot have this name.
func CheckName(name string) error {
	switch {
	case name == "":
		return badName("the name is empty: give one")
	case len(name) > 255:
		return badName("the name has %d bytes: at most 255 are allowed", len(name))
	case !utf8.ValidString(name):
		return badName("the name is not UTF-8")
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return badName("the name %q has a control character: take another one", name)
		}
	}
	return nil
}

// CheckNewName returns an error if a branch or a tag cannot be given this name, because it would look like another reference or have no address. Imported
// branches keep such names, unless they would have no address.
func CheckNewName(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	why := ""
	switch {
	case name[0] == '-':
		why = "begins with a dash, as flags do"
	case IsStep(name):
		why = "means a folder in a path, so that no address reaches it"
	case strings.Contains(name, "@"):
		why = "holds an @, as references do"
	case strings.Contains(name, ".."):
		why = "holds .., as ranges do"
	case IsLabel(name):
		why = "looks like the label of a turn"
	case strings.TrimSpace(name) != name:
		why = "begins or ends with white space, which nobody sees"
	case slices.ContainsFunc([]string{"tag:", "branch:", "id:"}, func(kind string) bool { return strings.HasPrefix(name, kind) }):
		why = "begins as a reference that says its kind"
	case len(name) >= 4 && strings.Trim(name, "0123456789abcdefABCDEF") == "":
		why = "looks like a part of an id"
	default:
		return nil
	}
	return badName("the name %q %s: take another one", name, why)
}

// IsStep reports whether a name is . or .., which programs take out of a path before they send it.
func IsStep(name string) bool { return name == "." || name == ".." }

// IsLabel reports whether a word is the label of a turn: u3, a3.
func IsLabel(s string) bool {
	return len(s) > 1 && (s[0] == 'u' || s[0] == 'a') && strings.Trim(s[1:], "0123456789") == ""
}

// PlainName makes a name that CheckNewName accepts from any text: @, .. and white space become dashes.
func PlainName(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "@", "-"), "..", "-")
	s = strings.TrimLeft(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), "-"), "-")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "")
	}
	if CheckNewName(s) != nil {
		s = "branch-" + s
	}
	return s
}

// ImportedName returns the name that a branch or a tag of a file gets here: its own, or another one if no address would reach it. It returns an error if no
// branch or tag can have it.
func ImportedName(name string) (string, error) {
	name = Reachable(name)
	return name, CheckName(name)
}

// Reachable returns a name under which an imported branch or tag has an address: the name itself, unless it is a step of a path.
func Reachable(name string) string {
	if IsStep(name) {
		return PlainName(name)
	}
	return name
}

// Key returns the key of a branch's record.
func Key(ctx, id pool.ID) []byte { return append(ctx[:], id[:]...) }

func nameKey(ctx pool.ID, name string) []byte { return append(ctx[:], name...) }

// Encode returns the bytes of the record, with a checksum.
func Encode(b *branch.Branch) ([]byte, error) {
	raw, err := stored.Marshal(b)
	if err != nil {
		return nil, err
	}
	return stored.AddChecksum(raw, nil), nil
}

// Decode decodes the record of the branch with this id. It returns kv.ErrDamaged if the record is broken or another branch's.
func Decode(id pool.ID, raw []byte) (*branch.Branch, error) {
	if err := stored.CheckRecord(raw, nil); err != nil {
		return nil, fmt.Errorf("%w: the record of branch %s: %w", kv.ErrDamaged, id, err)
	}
	b, err := DecodeFields(raw)
	if err == nil && b.ID != id {
		return nil, fmt.Errorf("%w: the record of branch %s is that of %s", kv.ErrDamaged, id, b.ID)
	}
	return b, err
}

// DecodeFields decodes a record, or some fields of one, without a checksum.
func DecodeFields(raw []byte) (*branch.Branch, error) {
	b := &branch.Branch{}
	if err := stored.Unmarshal(raw, b); err != nil {
		return nil, fmt.Errorf("%w: the record of a branch: %w", kv.ErrDamaged, err)
	}
	return b, nil
}

// Get reads a branch, removed or not; nil if there is no record of it.
func Get(tx kv.Tx, ctx, id pool.ID) (*branch.Branch, error) {
	raw, err := tx.Get(Bucket, Key(ctx, id))
	if raw == nil || err != nil {
		return nil, err
	}
	return Decode(id, raw)
}

// Lookup returns the id of the branch that has a name, the zero id if there is none.
func Lookup(tx kv.Tx, ctx pool.ID, name string) (pool.ID, error) {
	id, err := tx.Get(NameBucket, nameKey(ctx, name))
	switch {
	case id == nil || err != nil:
		return pool.ID{}, err
	case len(id) != 16:
		return pool.ID{}, fmt.Errorf("%w: the branch name %q leads to no branch", kv.ErrDamaged, name)
	}
	return pool.ID(id), nil
}

// Find reads the branch that has a name; nil if there is none.
func Find(tx kv.Tx, ctx pool.ID, name string) (*branch.Branch, error) {
	id, err := Lookup(tx, ctx, name)
	if id == (pool.ID{}) || err != nil {
		return nil, err
	}
	b, err := Get(tx, ctx, id)
	if err == nil && (b == nil || b.Removed != 0) {
		err = fmt.Errorf("%w: the branch name %q leads to no branch: chatctx repair", kv.ErrDamaged, name)
	}
	return b, err
}

// NameOf returns the name of a branch, removed or not; "" if it has no record.
func NameOf(tx kv.Tx, ctx, id pool.ID) (string, error) {
	b, err := Get(tx, ctx, id)
	if b == nil || err != nil {
		return "", err
	}
	return b.Name, nil
}

// FreeName returns the first of BASE.2, BASE.3 … that no branch has. It scans the names that begin with BASE and a dot once, some 40 ns each, and reads no
// records.
func FreeName(tx kv.Tx, ctx pool.ID, base string) (string, error) {
	prefix := nameKey(ctx, base+".")
	var found []int
	err := tx.Scan(NameBucket, kv.Prefix(prefix), func(key, _ []byte) error {
		if n := number(key[len(prefix):]); n > 1 {
			found = append(found, n)
		}
		return nil
	})
	taken := make([]bool, len(found)+3) // one of the numbers up to len(found)+2 is free
	for _, n := range found {
		if n < len(taken) {
			taken[n] = true
		}
	}
	n := 2
	for taken[n] {
		n++
	}
	return fmt.Sprintf("%s.%d", base, n), err
}

// number returns the number that digits write in the usual way, with at most nine digits, else 0.
func number(digits []byte) int {
	if len(digits) == 0 || len(digits) > 9 || digits[0] == '0' {
		return 0
	}
	n := 0
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0
		}
		n = 10*n + int(d-'0')
	}
	return n
}

// Put writes a branch's record. PutName writes its name.
func Put(tx kv.RwTx, ctx pool.ID, b *branch.Branch) error {
	raw, err := Encode(b)
	if err != nil {
		return err
	}
	return tx.Put(Bucket, Key(ctx, b.ID), raw)
}

// PutName makes a name lead to a branch.
func PutName(tx kv.RwTx, ctx pool.ID, name string, id pool.ID) error {
	return tx.Put(NameBucket, nameKey(ctx, name), id[:])
}

// DeleteName removes a name from the index.
func DeleteName(tx kv.RwTx, ctx pool.ID, name string) error {
	return tx.Delete(NameBucket, nameKey(ctx, name))
}

// List calls fn for each branch of a context that is not removed, sorted by id. If fn returns kv.ErrStop, List ends without an error.
func List(tx kv.Tx, ctx pool.ID, fn func(*branch.Branch) error) error {
	return All(tx, ctx, func(b *branch.Branch) error {
		if b.Removed != 0 {
			return nil
		}
		return fn(b)
	})
}

// All is like List but includes removed branches.
func All(tx kv.Tx, ctx pool.ID, fn func(*branch.Branch) error) error {
	return tx.Scan(Bucket, kv.Prefix(ctx[:]), func(key, value []byte) error {
		if len(key) != 32 {
			return fmt.Errorf("%w: a branch's key has %d bytes", kv.ErrDamaged, len(key))
		}
		b, err := Decode(pool.ID(key[16:]), value)
		if err != nil {
			return err
		}
		return fn(b)
	})
}

// Item is a message on its way into a history. Turn says that it begins a turn, with a user's own words.
type Item struct {
	ID   pool.ID
	Turn bool
}

// ItemOf returns the Item of a message.
func ItemOf(m *pool.Message) Item {
	return Item{ID: m.ID, Turn: m.Role == pool.User && m.Kind == "" && !m.Hidden}
}

// EntryKey returns the key of a history entry. The two numbers are as short as they can be and keep their order, since each message has such a key.
func EntryKey(ctx pool.ID, segment, position uint64) []byte {
	return appendNumber(appendNumber(append(make([]byte, 0, 34), ctx[:]...), segment), position)
}

// EntryAt reads the two numbers of a history entry's key. It reports false if no entry has such a key.
func EntryAt(key []byte) (segment, position uint64, ok bool) {
	if len(key) < 16 {
		return 0, 0, false
	}
	segment, rest := readNumber(key[16:])
	position, after := readNumber(rest)
	return segment, position, len(rest) > 0 && after != nil && len(after) == 0 && segment != 0
}

// shortNumbers is the least number that needs more than one byte: 247 and how many follow, then these.
const shortNumbers = 248

func appendNumber(b []byte, n uint64) []byte {
	if n < shortNumbers {
		return append(b, byte(n))
	}
	size := (bits.Len64(n) + 7) / 8
	b = append(b, byte(shortNumbers-1+size))
	for shift := 8 * (size - 1); shift >= 0; shift -= 8 {
		b = append(b, byte(n>>shift))
	}
	return b
}

// readNumber reads what appendNumber wrote, and returns the bytes after it: nil if there is no such number.
func readNumber(b []byte) (n uint64, rest []byte) {
	if len(b) == 0 {
		return 0, nil
	}
	if b[0] < shortNumbers {
		return uint64(b[0]), b[1:]
	}
	size := int(b[0]) - shortNumbers + 1
	if len(b) <= size {
		return 0, nil
	}
	for _, digit := range b[1 : 1+size] {
		n = n<<8 | uint64(digit)
	}
	if n < shortNumbers || (bits.Len64(n)+7)/8 != size {
		return 0, nil
	}
	return n, b[1+size:]
}

// entry is a decoded entry: the message, and how many turns the segment has begun up to and including it.
type entry struct {
	id    pool.ID
	turns uint64
}

func decodeEntry(value []byte) (entry, error) {
	if len(value) < 17 {
		return entry{}, fmt.Errorf("%w: a history entry has %d bytes", kv.ErrDamaged, len(value))
	}
	turns, n := binary.Uvarint(value[16:])
	if n <= 0 {
		return entry{}, fmt.Errorf("%w: a history entry has no count", kv.ErrDamaged)
	}
	return entry{pool.ID(value[:16]), turns}, nil
}

// there returns an error if gc or a purge took the message and left the entry, which counts turns for others. No branch has such an entry.
func (e entry) there() error {
	if e.id == (pool.ID{}) {
		return fmt.Errorf("%w: the message of a history entry was removed", kv.ErrDamaged)
	}
	return nil
}

func getEntry(tx kv.Tx, ctx pool.ID, segment, position uint64) (entry, error) {
	value, err := tx.Get(EntryBucket, EntryKey(ctx, segment, position))
	if err != nil {
		return entry{}, err
	}
	if value == nil {
		return entry{}, fmt.Errorf("%w: entry %d of segment %d is missing", kv.ErrDamaged, position, segment)
	}
	return decodeEntry(value)
}

// Write appends entries to the branch's own segment, which must not be 0, and returns where they are. It moves the high-water mark but does not change the
// history: the caller puts the piece on the branch, at the end or elsewhere.
func Write(tx kv.RwTx, ctx pool.ID, b *branch.Branch, items []Item) (branch.Piece, error) {
	p := branch.Piece{Segment: b.Segment, From: b.High, To: b.High + uint64(len(items))}
	turns := EndOf(b).Turns
	if b.High > 0 && EndOf(b) == (branch.End{}) {
		last, err := getEntry(tx, ctx, b.Segment, b.High-1)
		if err != nil {
			return p, err
		}
		turns = last.turns
	}
	for i, item := range items {
		if item.Turn {
			turns++
		}
		value := binary.AppendUvarint(append(make([]byte, 0, 26), item.ID[:]...), turns)
		if err := tx.Put(EntryBucket, EntryKey(ctx, p.Segment, p.From+uint64(i)), value); err != nil {
			return p, err
		}
	}
	b.High = p.To
	b.Ended = branch.End{Segment: b.Segment, High: b.High, Turns: turns}
	return p, nil
}

// EndOf returns the end of the branch's segment, or the zero End if it was not read or written yet.
func EndOf(b *branch.Branch) branch.End {
	if b.Ended.Segment != b.Segment || b.Ended.High != b.High {
		return branch.End{}
	}
	return b.Ended
}

// EntryKeys names the entries at some places of pieces, counted from 0, for kv.Fetch.
func EntryKeys(ctx pool.ID, pieces []branch.Piece, places ...int) (keys []kv.Key) {
	for _, i := range places {
		if segment, position, ok := At(pieces, i); ok {
			keys = append(keys, kv.Key{Bucket: EntryBucket, Key: EntryKey(ctx, segment, position)})
		}
	}
	return keys
}

// WriteKeys names what the next append to a branch reads, for kv.Fetch; with last also the branch's last entry.
func WriteKeys(ctx pool.ID, b *branch.Branch, last bool) []kv.Key {
	keys := []kv.Key{{Bucket: Bucket, Key: Key(ctx, b.ID)}}
	if last && b.High > 0 {
		keys = append(keys, kv.Key{Bucket: EntryBucket, Key: EntryKey(ctx, b.Segment, b.High-1)})
	}
	return keys
}

// TurnKeys names what Turns reads, for kv.Fetch.
func TurnKeys(ctx pool.ID, pieces []branch.Piece, n int) (keys []kv.Key) {
	for _, p := range Slice(pieces, 0, n) {
		keys = append(keys, kv.Key{Bucket: EntryBucket, Key: EntryKey(ctx, p.Segment, p.To-1)})
		if p.From > 0 {
			keys = append(keys, kv.Key{Bucket: EntryBucket, Key: EntryKey(ctx, p.Segment, p.From-1)})
		}
	}
	return keys
}

// NameKeys names what Lookup reads, for kv.Fetch; nothing for "".
func NameKeys(ctx pool.ID, name string) []kv.Key {
	if name == "" {
		return nil
	}
	return []kv.Key{{Bucket: NameBucket, Key: nameKey(ctx, name)}}
}

// PromptKeys names prompts, for kv.Fetch.
func PromptKeys(ctx pool.ID, ids ...string) (keys []kv.Key) {
	for _, id := range ids {
		if id != "" {
			keys = append(keys, kv.Key{Bucket: PromptBucket, Key: append(ctx[:], id...)})
		}
	}
	return keys
}

// ReadKeys names what Read reads, for kv.Fetch. Of many pieces it names the first ones.
func ReadKeys(ctx pool.ID, pieces []branch.Piece) (keys []kv.Key) {
	for _, p := range pieces[:min(len(pieces), piecesAtOnce)] {
		keys = append(keys, kv.In(EntryBucket, rowsOf(p, ctx)))
	}
	return keys
}

// piecesAtOnce is how many pieces are read together.
const piecesAtOnce = 64

// rowsOf returns the range of keys of a piece's entries.
func rowsOf(p branch.Piece, ctx pool.ID) kv.Range {
	return kv.Range{From: EntryKey(ctx, p.Segment, p.From), To: EntryKey(ctx, p.Segment, p.To)}
}

// Read calls fn for each entry of pieces, in order, with its place counted from 0. If fn returns kv.ErrStop, Read ends without an error.
func Read(tx kv.Tx, ctx pool.ID, pieces []branch.Piece, fn func(i int, id pool.ID) error) error {
	i := 0
	for n, p := range pieces {
		if n%piecesAtOnce == 0 && len(pieces) > 1 {
			if err := kv.Fetch(tx, ReadKeys(ctx, pieces[n:])...); err != nil {
				return err
			}
		}
		want := i + pieceLen(p)
		stopped := false
		err := tx.Scan(EntryBucket, rowsOf(p, ctx), func(_, value []byte) error {
			e, err := decodeEntry(value)
			if err == nil {
				err = e.there()
			}
			if err != nil {
				return err
			}
			err = fn(i, e.id)
			stopped = err == kv.ErrStop
			i++
			return err
		})
		if err != nil || stopped {
			return err
		}
		if i != want {
			return short(p, i-want+pieceLen(p))
		}
	}
	return nil
}

// IDs returns the ids of all entries of pieces.
func IDs(tx kv.Tx, ctx pool.ID, pieces []branch.Piece) ([]pool.ID, error) {
	ids := make([]pool.ID, 0, Count(pieces))
	err := Read(tx, ctx, pieces, func(_ int, id pool.ID) error { ids = append(ids, id); return nil })
	return ids, err
}

// Head returns the id of the last entry, the zero id if there is none.
func Head(tx kv.Tx, ctx pool.ID, pieces []branch.Piece) (pool.ID, error) {
	return IDAt(tx, ctx, pieces, Count(pieces)-1)
}

// IDAt returns the id of the entry at place i, counted from 0; the zero id if there is none.
func IDAt(tx kv.Tx, ctx pool.ID, pieces []branch.Piece, i int) (pool.ID, error) {
	segment, position, ok := At(pieces, i)
	if !ok {
		return pool.ID{}, nil
	}
	e, err := getEntry(tx, ctx, segment, position)
	if err == nil {
		err = e.there()
	}
	return e.id, err
}

// Turns returns how many turns the first n entries of pieces begin. It reads two entries for each piece.
func Turns(tx kv.Tx, ctx pool.ID, pieces []branch.Piece, n int) (int, error) {
	total := 0
	if err := kv.Fetch(tx, TurnKeys(ctx, pieces, n)...); err != nil {
		return 0, err
	}
	for _, p := range Slice(pieces, 0, n) {
		last, err := getEntry(tx, ctx, p.Segment, p.To-1)
		if err != nil {
			return 0, err
		}
		total += int(last.turns)
		if p.From > 0 {
			before, err := getEntry(tx, ctx, p.Segment, p.From-1)
			if err != nil {
				return 0, err
			}
			total -= int(before.turns)
		}
	}
	return total, nil
}

// Shared returns how many leading entries two histories have in common. It compares pieces, and ids where segments differ: few at first, since most
// histories part where their segments do.
func Shared(tx kv.Tx, ctx pool.ID, a, b []branch.Piece) (int, error) {
	return NewSharer(tx, ctx).Shared(a, b)
}

// Sharer does Shared for many pairs of histories in one transaction. Where two lists part it reads one entry of each, once.
type Sharer struct {
	tx  kv.Tx
	ctx pool.ID
	ids map[[2]uint64]pool.ID // by segment and position
}

// NewSharer returns a Sharer for histories of a context.
func NewSharer(tx kv.Tx, ctx pool.ID) *Sharer {
	return &Sharer{tx, ctx, map[[2]uint64]pool.ID{}}
}

// Shared is like the function Shared.
func (s *Sharer) Shared(a, b []branch.Piece) (int, error) {
	n := sharedPieces(a, b)
	one, err := s.idAt(a, n)
	if err != nil {
		return 0, err
	}
	other, err := s.idAt(b, n)
	if err != nil || one != other || one == (pool.ID{}) {
		return n, err
	}
	for step := 1; ; step = min(4*step, 256) {
		as, err := IDs(s.tx, s.ctx, Slice(a, n, n+step))
		if err != nil {
			return 0, err
		}
		bs, err := IDs(s.tx, s.ctx, Slice(b, n, n+step))
		if err != nil {
			return 0, err
		}
		i := 0
		for i < len(as) && i < len(bs) && as[i] == bs[i] {
			i++
		}
		n += i
		if i < step {
			return n, nil
		}
	}
}

// idAt is IDAt with a cache.
func (s *Sharer) idAt(pieces []branch.Piece, i int) (pool.ID, error) {
	segment, position, ok := At(pieces, i)
	if !ok {
		return pool.ID{}, nil
	}
	key := [2]uint64{segment, position}
	if id, ok := s.ids[key]; ok {
		return id, nil
	}
	e, err := getEntry(s.tx, s.ctx, segment, position)
	if err == nil {
		s.ids[key] = e.id
	}
	return e.id, err
}

// Merge copies the longest run of short pieces into the branch's own segment if there are many pieces. It returns the new list, with the same entries in
// the same order. Only edits that add pieces call it, never fork or append.
func Merge(tx kv.RwTx, ctx pool.ID, b *branch.Branch) ([]branch.Piece, error) {
	if len(b.Pieces) <= maxPieces {
		return b.Pieces, nil
	}
	first, end := shortRun(b.Pieces)
	if end-first < 2 {
		return b.Pieces, nil
	}
	run := b.Pieces[first:end]
	items, err := itemsOf(tx, ctx, run)
	if err != nil {
		return nil, err
	}
	p, err := Write(tx, ctx, b, items)
	if err != nil {
		return nil, err
	}
	at := Count(b.Pieces[:first])
	return Splice(b.Pieces, at, Count(run), []branch.Piece{p}), nil
}

// itemsOf reads entries back as items.
func itemsOf(tx kv.Tx, ctx pool.ID, pieces []branch.Piece) ([]Item, error) {
	var items []Item
	keys := ReadKeys(ctx, pieces)
	for _, p := range pieces {
		if p.From > 0 {
			keys = append(keys, kv.Key{Bucket: EntryBucket, Key: EntryKey(ctx, p.Segment, p.From-1)})
		}
	}
	if err := kv.Fetch(tx, keys...); err != nil {
		return nil, err
	}
	for _, p := range pieces {
		var before uint64
		if p.From > 0 {
			e, err := getEntry(tx, ctx, p.Segment, p.From-1)
			if err != nil {
				return nil, err
			}
			before = e.turns
		}
		n := len(items)
		err := tx.Scan(EntryBucket, rowsOf(p, ctx), func(_, value []byte) error {
			e, err := decodeEntry(value)
			if err == nil {
				items = append(items, Item{e.id, e.turns > before})
				before = e.turns
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(items)-n != pieceLen(p) {
			return nil, short(p, len(items)-n)
		}
	}
	return items, nil
}

// short is the error for a piece of which only some entries exist.
func short(p branch.Piece, has int) error {
	return fmt.Errorf("%w: segment %d has %d of %d entries from %d on", kv.ErrDamaged, p.Segment, has, pieceLen(p), p.From)
}

// PromptID returns the id of a prompt with this text; that of "" is "".
func PromptID(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// PutPrompt stores a prompt and returns its id, which is a hash of the text. It returns ErrInvalid if the text is not UTF-8.
func PutPrompt(tx kv.RwTx, ctx pool.ID, text string) (string, error) {
	id := PromptID(text)
	if id == "" {
		return "", nil
	}
	if err := stored.CheckText("a prompt", text); err != nil {
		return "", err
	}
	return id, tx.Put(PromptBucket, append(ctx[:], id...), []byte(text))
}

// Prompt reads a prompt's text.
func Prompt(tx kv.Tx, ctx pool.ID, id string) (string, error) {
	if id == "" {
		return "", nil
	}
	text, err := tx.Get(PromptBucket, append(ctx[:], id...))
	if err == nil && text == nil {
		err = fmt.Errorf("%w: prompt %s is missing", kv.ErrDamaged, id)
	}
	return string(text), err
}
