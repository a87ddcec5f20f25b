package pool

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
)

// Words is a hash of what a message says: its role, kind, content, calls and result. It does not tell when it was said, by which model, and what
// became of its calls, so that two programs that keep the same message have the same Words of it.
func (m *Message) Words() Hash {
	b := appendText(make([]byte, 0, 512), string(m.Role), m.Kind)
	b = appendParts(b, m.Content)
	b = binary.AppendUvarint(b, uint64(len(m.Calls)))
	for i := range m.Calls {
		c := &m.Calls[i]
		b = appendText(b, c.ID, c.Tool, string(c.Arguments))
	}
	if r := m.Result; r != nil {
		b = appendText(b, r.RequestID, r.Tool, r.Text, string(r.JSON))
		if r.IsError {
			b = append(b, 1)
		}
		b = appendParts(b, r.Parts)
	}
	return sha256.Sum256(b)
}

func appendText(b []byte, texts ...string) []byte {
	for _, t := range texts {
		b = binary.AppendUvarint(b, uint64(len(t)))
		b = append(b, t...)
	}
	return b
}

func appendParts(b []byte, parts []Part) []byte {
	b = binary.AppendUvarint(b, uint64(len(parts)))
	for i := range parts {
		p := &parts[i]
		b = appendText(b, p.Type, p.Text, p.URL, p.Signature, p.Redacted)
		sum := p.dataHash()
		if b = append(b, sum[:8]...); p.Text == "" && sum == (Hash{}) {
			b = appendText(b, string(p.Raw))
		}
	}
	return b
}

// dataHash is the hash of a part's bytes, wherever they lie; zero for none.
func (p *Part) dataHash() Hash {
	if len(p.Data) > 0 {
		return HashOf(p.Data)
	}
	return p.SHA256
}

// Continues tells whether m is earlier at a later time: the same, written on. Its texts go on, parts and calls were added behind those that
// there were, a call that had no result got its arguments, or a reply that was not finished is.
func (m *Message) Continues(earlier *Message) bool {
	if m.Role != earlier.Role || (m.Result == nil) != (earlier.Result == nil) {
		return false
	}
	if earlier.Unfinished && !m.Unfinished {
		return true
	}
	if !partsContinue(m.Content, earlier.Content) || len(m.Calls) < len(earlier.Calls) {
		return false
	}
	for i := range earlier.Calls {
		if !m.Calls[i].continues(&earlier.Calls[i]) {
			return false
		}
	}
	r, was := m.Result, earlier.Result
	return r == nil || r.RequestID == was.RequestID && strings.HasPrefix(r.Text, was.Text) && bytes.HasPrefix(r.JSON, was.JSON) && partsContinue(r.Parts, was.Parts)
}

// continues tells whether a call is an earlier one: arguments may still be written only while it has not run.
func (c *Call) continues(earlier *Call) bool {
	return c.ID == earlier.ID && c.Tool == earlier.Tool &&
		(bytes.Equal(c.Arguments, earlier.Arguments) || earlier.Execution == NotRun && c.Execution != NotRun)
}

func partsContinue(parts, earlier []Part) bool {
	if len(parts) < len(earlier) {
		return false
	}
	return !slices.ContainsFunc(earlier, func(was Part) bool {
		p := &parts[0]
		parts = parts[1:]
		return !p.continues(&was)
	})
}

func (p *Part) continues(earlier *Part) bool {
	return p.Type == earlier.Type && p.CallID == earlier.CallID && strings.HasPrefix(p.Text, earlier.Text) && strings.HasPrefix(p.URL, earlier.URL) &&
		strings.HasPrefix(p.Signature, earlier.Signature) && strings.HasPrefix(p.Redacted, earlier.Redacted) && p.dataHash() == earlier.dataHash() &&
		(p.Text != "" || earlier.dataHash() != Hash{} || bytes.Equal(p.Raw, earlier.Raw))
}
