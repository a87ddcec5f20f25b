package base

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// GoneBucket has marks of what was purged or redacted here, so that no import brings it back: the first 16 bytes of the SHA-256 of an id, of ours or of the
// source's, to a GoneMark. Whoever has such an id can see that its thing was here and is gone; nobody learns a text.
const GoneBucket = "gone"

// MetaGone is the key of meta of a GoneState, present since the first mark.
var MetaGone = []byte("gone")

// The kinds of what is gone.
const (
	GoneMessage = iota + 1
	GoneBranch
	GoneContext
	GoneRedacted // a message of which parts were redacted
)

// GoneMark is the value of a mark.
type GoneMark struct {
	Kind int       `cbor:"1,keyasint"`
	At   pool.Time `cbor:"2,keyasint"`
}

// GoneState is about all marks. Key is the store's secret for marks of texts, Written counts the transactions that wrote marks.
type GoneState struct {
	Key     []byte `cbor:"1,keyasint"`
	Written uint64 `cbor:"2,keyasint"`
}

// GoneKey is the key of the mark of an id, or of a SourceKey.
type GoneKey [16]byte

// GoneID returns the key of the mark of one of our ids.
func GoneID(id pool.ID) GoneKey { return goneHash(id[:]) }

// GoneSource returns the key of the mark of a node of another program's file, of its conversation without a node.
func GoneSource(format, conversation, node string) GoneKey {
	return goneHash(SourceKey(format, conversation, node))
}

func goneHash(b []byte) GoneKey {
	sum := sha256.Sum256(b)
	return GoneKey(sum[:16])
}

// MadeID begins the part of a conversation's id that an import makes of its content, where the file has no id of its own for it.
const MadeID = "sha256:"

// MadeUp reports whether the id of a source's conversation changes with its content.
func MadeUp(conversation string) bool {
	return conversation == "" || strings.Contains(conversation, MadeID)
}

// shortText is the length in bytes below which a text alone is no reason to know a message by it.
const shortText = 64

// GoneText returns the key of the mark of a message that has an id nowhere: the keyed hash of its words. Short words count only in their place, after the
// message with the words before, or before the one with the words after if it is the first.
func (s *GoneState) GoneText(m *pool.Message, before, after *pool.Message) GoneKey {
	return s.GoneWords(poolstore.Words(m), textLength(m) < shortText, wordsOf(before), wordsOf(after))
}

// GoneWords is GoneText by the hashes of the words; zero: there is no such message.
func (s *GoneState) GoneWords(words pool.Hash, short bool, before, after pool.Hash) GoneKey {
	h := hmac.New(sha256.New, s.Key)
	h.Write(words[:])
	switch {
	case short && before != (pool.Hash{}):
		h.Write(append([]byte("after"), before[:]...))
	case short:
		h.Write(append([]byte("before"), after[:]...))
	}
	return GoneKey(h.Sum(nil)[:16])
}

func wordsOf(m *pool.Message) pool.Hash {
	if m == nil {
		return pool.Hash{}
	}
	return poolstore.Words(m)
}

// ShortWords reports whether a message's words are short.
func ShortWords(m *pool.Message) bool { return textLength(m) < shortText }

func textLength(m *pool.Message) int {
	n := 0
	count := func(parts []pool.Part) {
		for i := range parts {
			n += len(parts[i].Text) + len(parts[i].Data) + len(parts[i].Raw)
			if parts[i].SHA256 != (pool.Hash{}) {
				n += shortText
			}
		}
	}
	count(m.Content)
	for i := range m.Calls {
		n += len(m.Calls[i].Arguments)
	}
	if r := m.Result; r != nil {
		n += len(r.Text) + len(r.JSON)
		count(r.Parts)
	}
	return n
}

// GoneMarks collects the marks of one purge or redaction before its records are removed.
type GoneMarks struct {
	state GoneState
	marks map[GoneKey]int
}

// NewGoneMarks begins to collect.
func NewGoneMarks(tx kv.Tx) (*GoneMarks, error) {
	g := &GoneMarks{marks: map[GoneKey]int{}}
	if _, err := GetRecord(tx, MetaBucket, MetaGone, &g.state); err != nil {
		return nil, err
	}
	if g.state.Key == nil {
		g.state.Key = make([]byte, 32)
		rand.Read(g.state.Key) // it never fails
	}
	return g, nil
}

// Add marks something by the key of its id.
func (g *GoneMarks) Add(kind int, keys ...GoneKey) {
	for _, k := range keys {
		if g.marks[k] != GoneContext {
			g.marks[k] = kind
		}
	}
}

// Source marks a conversation by its key in the bucket source.
func (g *GoneMarks) Source(kind int, key []byte) { g.Add(kind, goneHash(key)) }

// Keys returns the keys by which a message is known: its id, the id in its source, and its words if the source made up the conversation's id. before and after
// are its neighbours, nil for none.
func (g *GoneMarks) Keys(m, before, after *pool.Message) []GoneKey {
	keys := []GoneKey{GoneID(m.ID)}
	src := m.Source
	if src == nil {
		return keys
	}
	if src.Conversation != "" && src.Node != "" {
		keys = append(keys, GoneSource(src.Format, src.Conversation, src.Node))
	}
	if MadeUp(src.Conversation) {
		keys = append(keys, g.state.GoneText(m, before, after))
	}
	return keys
}

// Forget removes those marks, which earlier purges may have left.
func (g *GoneMarks) Forget(tx kv.RwTx) error {
	if len(g.marks) == 0 || g.state.Written == 0 {
		return nil
	}
	for _, k := range g.keys() {
		if err := tx.Delete(GoneBucket, k[:]); err != nil {
			return err
		}
	}
	g.state.Written++
	return PutRecord(tx, MetaBucket, MetaGone, g.state)
}

func (g *GoneMarks) keys() []GoneKey {
	keys := slices.Collect(maps.Keys(g.marks))
	slices.SortFunc(keys, func(a, b GoneKey) int { return bytes.Compare(a[:], b[:]) })
	return keys
}

// Put writes the marks.
func (g *GoneMarks) Put(tx kv.RwTx, now pool.Time) error {
	if len(g.marks) == 0 {
		return nil
	}
	for _, k := range g.keys() {
		if err := PutRecord(tx, GoneBucket, k[:], GoneMark{g.marks[k], now}); err != nil {
			return err
		}
	}
	g.state.Written++
	return PutRecord(tx, MetaBucket, MetaGone, g.state)
}
