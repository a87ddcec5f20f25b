package exchange

import (
	"encoding/binary"
	"errors"
	"os"
	"sync"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/leftover"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// shelf keeps the contents of a large conversation's messages in a temporary file, from reading until storing. The messages keep only what the tree needs: who
// spoke when, and which calls are answered. Its methods may be called on nil, which keeps all in memory. One goroutine puts messages away; another may get them
// meanwhile.
type shelf struct {
	room int   // bytes of a conversation's messages that stay in memory
	held int   // bytes in memory now
	err  error // from bringing messages back

	lock   sync.Mutex
	file   *os.File
	end    int64
	at     map[*chatctx.Message]slot
	closed bool
}

// slot is the place of a message in the file.
type slot struct {
	from       int64
	size, room int // its size, and the space until the next one
}

// spare is the space left after each message, for later additions (an id, its origin).
const spare = 256

// newConversation restarts the count of bytes in memory.
func (s *shelf) newConversation() {
	if s != nil {
		s.held = 0
	}
}

// put puts the contents of messages away once they are larger than the room. A message that could not be restored exactly stays in memory, and so do all if the
// file cannot be written.
func (s *shelf) put(msgs ...*chatctx.Message) {
	if s == nil {
		return
	}
	for _, m := range msgs {
		if s.Has(m) || m.Validate() != nil {
			continue
		}
		n := poolstore.Weight(m)
		if s.held+n <= s.room {
			s.held += n
			continue
		}
		if b, err := shelved(m); err == nil && s.write(m, b) == nil {
			lighten(m)
		}
	}
}

func (s *shelf) write(m *chatctx.Message, b []byte) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.closed {
		return os.ErrClosed
	}
	if s.file == nil {
		f, err := os.CreateTemp("", leftover.Name("import"))
		if err != nil {
			return err
		}
		os.Remove(f.Name()) // where the system allows it, so that a killed program leaves no file behind
		s.file, s.at = f, map[*chatctx.Message]slot{}
	}
	at := s.at[m]
	if at.room < len(b) {
		at = slot{from: s.end, room: len(b) + spare}
		s.end += int64(at.room)
	}
	at.size = len(b)
	if _, err := s.file.WriteAt(b, at.from); err != nil {
		return err
	}
	s.at[m] = at
	return nil
}

// Has reports whether a message is on the shelf.
func (s *shelf) Has(m *chatctx.Message) bool {
	_, there := s.slot(m)
	return there
}

func (s *shelf) slot(m *chatctx.Message) (slot, bool) {
	if s == nil {
		return slot{}, false
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	at, there := s.at[m]
	return at, there
}

// Get returns a complete message: with its contents, and with what was changed since.
func (s *shelf) Get(m *chatctx.Message) (*chatctx.Message, error) {
	at, there := s.slot(m)
	if !there {
		return m, nil
	}
	b := make([]byte, at.size)
	if _, err := s.file.ReadAt(b, at.from); err != nil {
		return nil, err
	}
	whole, err := unshelved(b)
	if err != nil {
		return nil, err
	}
	withNotes(whole, m)
	return whole, nil
}

// Put puts a message away again that was changed after Get.
func (s *shelf) Put(m, whole *chatctx.Message) error {
	if m == whole {
		return nil
	}
	b, err := shelved(whole)
	if err == nil {
		err = s.write(m, b)
	}
	if err == nil {
		*m = *whole
		lighten(m)
	}
	return err
}

// back brings messages back into memory, until they are put away again.
func (s *shelf) back(msgs ...*chatctx.Message) {
	for _, m := range msgs {
		if !s.Has(m) {
			continue
		}
		whole, err := s.Get(m)
		if err != nil {
			s.err = errors.Join(s.err, err)
			continue
		}
		*m = *whole
		s.lock.Lock()
		delete(s.at, m)
		s.lock.Unlock()
	}
}

// text returns the text of a message.
func (s *shelf) text(m *chatctx.Message) string {
	whole, err := s.Get(m)
	if err != nil {
		s.err = errors.Join(s.err, err)
		return ""
	}
	return whole.Text()
}

// close removes the file.
func (s *shelf) close() {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.file != nil && !s.closed {
		s.closed = true
		s.file.Close() // later requests are errors, instead of messages without contents
		os.Remove(s.file.Name())
	}
}

// shelved returns a message as it is in the file: its record, and the bytes of its parts.
func shelved(m *chatctx.Message) ([]byte, error) {
	b, err := poolstore.Encode(m)
	if err != nil {
		return nil, err
	}
	b = append(binary.AppendUvarint(nil, uint64(len(b))), b...)
	for _, p := range allParts(m) {
		if p.Data == nil {
			b = append(b, 0)
			continue
		}
		b = append(binary.AppendUvarint(b, uint64(len(p.Data))+1), p.Data...)
	}
	return b, nil
}

func unshelved(b []byte) (*chatctx.Message, error) {
	next := func() []byte {
		n, k := binary.Uvarint(b)
		out := b[k : k+int(n)]
		b = b[k+int(n):]
		return out
	}
	m := new(chatctx.Message)
	if err := poolstore.Decode(next(), m); err != nil {
		return nil, err
	}
	for _, p := range allParts(m) {
		n, k := binary.Uvarint(b)
		if b = b[k:]; n > 0 {
			p.Data, b = b[:n-1:n-1], b[n-1:]
		}
	}
	return m, nil
}

func allParts(m *chatctx.Message) []*pool.Part {
	var out []*pool.Part
	for i := range m.Content {
		out = append(out, &m.Content[i])
	}
	if m.Result != nil {
		for i := range m.Result.Parts {
			out = append(out, &m.Result.Parts[i])
		}
	}
	return out
}

// lighten reduces a message to what a tree needs.
func lighten(m *chatctx.Message) {
	calls := make([]pool.Call, len(m.Calls))
	for i, c := range m.Calls {
		calls[i] = pool.Call{ID: c.ID, Tool: c.Tool, Status: c.Status, Execution: c.Execution, Reason: c.Reason}
	}
	light := chatctx.Message{ID: m.ID, Role: m.Role, Created: m.Created, Kind: m.Kind, Hidden: m.Hidden, Unsent: m.Unsent, Unfinished: m.Unfinished,
		CopiedFrom: m.CopiedFrom, Calls: calls[:len(calls):len(calls)], Meta: pool.Metadata{FinishReason: m.Meta.FinishReason}}
	if r := m.Result; r != nil {
		light.Result = &pool.Result{RequestID: r.RequestID, Tool: r.Tool, IsError: r.IsError}
	}
	*m = light
}

// withNotes copies the changes of a reduced message to the complete one.
func withNotes(whole, light *chatctx.Message) {
	whole.ID, whole.Kind, whole.Hidden, whole.Unsent, whole.Unfinished = light.ID, light.Kind, light.Hidden, light.Unsent, light.Unfinished
	whole.Created, whole.CopiedFrom, whole.Home = light.Created, light.CopiedFrom, light.Home
	for i := range whole.Calls {
		c := &light.Calls[i]
		whole.Calls[i].Status, whole.Calls[i].Execution, whole.Calls[i].Reason = c.Status, c.Execution, c.Reason
	}
	if whole.Result != nil {
		whole.Result.RequestID = light.Result.RequestID
	}
	if light.Source != nil {
		s := source(whole)
		s.Format, s.Conversation, s.Node = light.Source.Format, light.Source.Conversation, light.Source.Node
	}
	whole.Meta.Model = firstOf(whole.Meta.Model, light.Meta.Model)
	for name, raw := range light.Meta.ProviderData {
		whole.Meta.ProviderData = appendData(whole.Meta.ProviderData, name, raw)
	}
}
