package exchange

import (
	"encoding/binary"
	"encoding/hex"
	"github.com/chatctx/chatctx/chatctx/record"
	"slices"
)

// The store of Cursor's command line is store.db, with blobs by their hashes. Messages are JSON in the form of Vercel's AI SDK. The other blobs are protobuf
// and name blobs by their 32 bytes; the newest of these names the messages of the conversation in order. Messages that it does not lead to are former turns: a
// path of their own.

func detectCursorCLI(h *head) bool {
	return h.db.has("blobs", "id", "data") && h.db.has("meta", "key", "value")
}

func readCursorCLI(r *reading) error {
	r.db.knows("meta", "key")
	in := &record.Incoming{}
	about, err := cursorMeta(r)
	if err != nil {
		return err
	}
	in.Conversation, in.Title, in.Created = about.get("agentId").str(), about.get("name").str(), about.get("createdAt").time()
	blobs, err := r.db.grouped("blobs", "id")
	if err != nil {
		return err
	}
	s := &cursorStore{blobs: blobs, chat: &vercel{r: r, t: r.thread(place{})}, times: map[string]int{}, model: about.get("lastUsedModel").str()}
	if err := s.read(about.get("latestRootBlobId").str()); err != nil {
		return err
	}
	active := s.chat.t.last()
	for w, err := range r.db.rows("blobs") {
		if err != nil {
			return r.atEnd(err, func() error { return s.chat.t.handOn(in, about, active) })
		}
		id := w.str("id")
		if v, ok := cursorMessage(w); ok && s.times[id] == 0 {
			s.message(id, v, s.former)
			s.former = s.chat.t.last()
		}
	}
	about.get("latestRootBlobId").taken()
	return s.chat.t.handOn(in, about, firstOf(active, s.former))
}

// cursorMeta returns the store's record of its conversation: JSON in hexadecimal digits.
func cursorMeta(r *reading) (value, error) {
	for w, err := range r.db.rows("meta") {
		if err != nil {
			return value{}, err
		}
		text, err := hex.DecodeString(w.str("value"))
		if err != nil {
			text = []byte(w.str("value"))
		}
		if v, _, err := new(document).parse(text, false); err == nil && v.get("agentId").is(stringKind) {
			r.repeatedKeys(place{what: "meta"}, v)
			return v, nil
		}
		r.warn(place{what: "row " + itoa(int(w.ID))}, "this row of the table meta is no record of a conversation and is left out")
	}
	return value{}, nil
}

type cursorStore struct {
	blobs  *groups
	chat   *vercel
	times  map[string]int // how often each blob was read
	model  string
	former string // the last message that the root does not lead to
}

// maxBlobs limits the number of blobs that are read: a store may name a blob any number of times.
const maxBlobs = 1_000_000

// read adds the messages that a blob leads to.
func (s *cursorStore) read(root string) error {
	todo := []string{root}
	for n := 0; len(todo) > 0 && n < maxBlobs; n++ {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for w, err := range s.blobs.of(id) {
			if err != nil {
				return err
			}
			if v, ok := cursorMessage(w); ok {
				s.message(id, v, s.chat.t.last())
			} else if s.times[id]++; s.times[id] == 1 {
				named := s.named(w.data(), 0)
				slices.Reverse(named)
				todo = append(todo, named...)
			}
		}
	}
	return nil
}

func (s *cursorStore) message(id string, v value, parent string) {
	if s.times[id]++; s.times[id] > 1 {
		id += "~" + itoa(s.times[id]) // the same message again
	}
	s.chat.r.repeatedKeys(place{what: "message " + id}, v)
	from := len(s.chat.t.records)
	s.chat.id = id
	s.chat.messageBelow(v, parent)
	for _, rec := range s.chat.t.records[from:] {
		if m := rec.message; m != nil && m.Role == "assistant" && m.Meta.Model == "" {
			m.Meta.Model = s.model
		}
	}
}

// data returns the bytes of a blob.
func (w row) data() []byte {
	if b := w.bytes("data"); b != nil {
		return b
	}
	return []byte(w.str("data"))
}

// cursorMessage returns a blob's message, and whether the blob is one.
func cursorMessage(w row) (value, bool) {
	data := w.data()
	if len(data) == 0 || data[0] != '{' {
		return value{}, false
	}
	v, _, err := new(document).parse(data, false)
	return v, err == nil && v.get("role").is(stringKind)
}

// named returns the blobs that a protobuf message and the messages within it name, in order.
func (s *cursorStore) named(b []byte, depth int) []string {
	var out []string
	for len(b) > 0 && depth < 8 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return out
		}
		b = b[n:]
		size, skip := uint64(0), 0
		switch tag & 7 {
		case 0:
			_, skip = binary.Uvarint(b)
		case 1:
			size = 8
		case 5:
			size = 4
		case 2:
			size, skip = binary.Uvarint(b)
		default:
			return out
		}
		if skip < 0 || uint64(len(b)-skip) < size || tag&7 == 0 && skip == 0 {
			return out
		}
		field := b[skip : skip+int(size)]
		b = b[skip+int(size):]
		if tag&7 != 2 {
			continue
		}
		if id := hex.EncodeToString(field); size == 32 && len(s.blobs.places[id]) > 0 {
			out = append(out, id)
		} else {
			out = append(out, s.named(field, depth+1)...)
		}
	}
	return out
}
