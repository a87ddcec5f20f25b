package poolstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/pool"
)

// Words returns a hash of what a message says: its role, kind, content, calls and result. It does not depend on the time, the model or the states of calls,
// so two programs that keep the same message compute the same Words.
func Words(m *pool.Message) pool.Hash {
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

func appendParts(b []byte, parts []pool.Part) []byte {
	b = binary.AppendUvarint(b, uint64(len(parts)))
	for i := range parts {
		p := &parts[i]
		b = appendText(b, p.Type, p.Text, p.URL, p.Signature, p.Redacted)
		sum := dataHash(p)
		if b = append(b, sum[:8]...); p.Text == "" && sum == (pool.Hash{}) {
			b = appendText(b, string(p.Raw))
		}
	}
	return b
}

// dataHash returns the hash of a part's bytes, wherever they are; zero if it has none.
func dataHash(p *pool.Part) pool.Hash {
	if len(p.Data) > 0 {
		return pool.HashOf(p.Data)
	}
	return p.SHA256
}

// Continues reports whether m is a later version of earlier, written on: its texts are longer, it has more parts or calls after the earlier ones, a call
// without a result has got its arguments, or an unfinished reply is finished.
func Continues(m *pool.Message, earlier *pool.Message) bool {
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
		if !callContinues(&m.Calls[i], &earlier.Calls[i]) {
			return false
		}
	}
	r, was := m.Result, earlier.Result
	return r == nil || r.RequestID == was.RequestID && strings.HasPrefix(r.Text, was.Text) && bytes.HasPrefix(r.JSON, was.JSON) && partsContinue(r.Parts, was.Parts)
}

// callContinues reports whether a call is a later version of earlier. Its arguments may differ only if the earlier one had not run.
func callContinues(c *pool.Call, earlier *pool.Call) bool {
	return c.ID == earlier.ID && c.Tool == earlier.Tool &&
		(bytes.Equal(c.Arguments, earlier.Arguments) || earlier.Execution == pool.NotRun && c.Execution != pool.NotRun)
}

func partsContinue(parts, earlier []pool.Part) bool {
	if len(parts) < len(earlier) {
		return false
	}
	return !slices.ContainsFunc(earlier, func(was pool.Part) bool {
		p := &parts[0]
		parts = parts[1:]
		return !partContinues(p, &was)
	})
}

func partContinues(p *pool.Part, earlier *pool.Part) bool {
	return p.Type == earlier.Type && p.CallID == earlier.CallID && strings.HasPrefix(p.Text, earlier.Text) && strings.HasPrefix(p.URL, earlier.URL) &&
		strings.HasPrefix(p.Signature, earlier.Signature) && strings.HasPrefix(p.Redacted, earlier.Redacted) && dataHash(p) == dataHash(earlier) &&
		(p.Text != "" || dataHash(earlier) != pool.Hash{} || bytes.Equal(p.Raw, earlier.Raw))
}
