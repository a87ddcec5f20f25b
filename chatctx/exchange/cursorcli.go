package exchange

import (
	"encoding/binary"
	"encoding/hex"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
)

// Cursor's command line: store.db, with blobs by their hashes. Messages are JSON as Vercel's AI SDK has it; other blobs, in protobuf, name blobs by their 32 bytes, and
// the newest of these names the messages of the conversation in order. What it does not lead to are former turns: a path of its own.

func detectCursorCLI(h *head) bool {
	return h.db.has("blobs", "id", "data") && h.db.has("meta", "key", "value")
}

func readCursorCLI(r *reading) error {
	r.db.knows("meta", "key")
	in := &chatctx.Incoming{}
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

// cursorMeta is what the store says of its conversation: JSON in hexadecimal digits.
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
			return v, nil
		}
	}
	return value{}, nil
}

type cursorStore struct {
	blobs  *groups
	chat   *vercel
	times  map[string]int // how often a blob was met
	model  string
	former string // the last message that the root does not lead to
}

// maxBlobs bounds how many blobs are walked through: a store may name one as often as it likes.
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
		id += "~" + itoa(s.times[id]) // the same words again
	}
	from := len(s.chat.t.records)
	s.chat.id = id
	s.chat.messageBelow(v, parent)
	for _, rec := range s.chat.t.records[from:] {
		if m := rec.message; m != nil && m.Role == "assistant" && m.Meta.Model == "" {
			m.Meta.Model = s.model
		}
	}
}

// data are the bytes of a blob.
func (w row) data() []byte {
	if b := w.bytes("data"); b != nil {
		return b
	}
	return []byte(w.str("data"))
}

// cursorMessage is a blob that is a message.
func cursorMessage(w row) (value, bool) {
	data := w.data()
	if len(data) == 0 || data[0] != '{' {
		return value{}, false
	}
	v, _, err := new(document).parse(data, false)
	return v, err == nil && v.get("role").is(stringKind)
}

// named are the blobs that a message of protobuf names, in order, also in messages within it.
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
