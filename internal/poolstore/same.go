package poolstore

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/chatctx/chatctx/pool"
)

// Same reports whether two messages say the same: role, parts, calls (id, tool, arguments) and result. The spacing of JSON, the states of calls, a result's
// compact summary and everything beside the words do not count. Contents are the same whether they are present or, as in a stored message, named by their
// hash.
func Same(a, b *pool.Message) (bool, error) {
	x, err := Encode(said(a))
	if err != nil {
		return false, err
	}
	y, err := Encode(said(b))
	return bytes.Equal(x, y), err
}

// SameBut is like Same, but a may have the mark in place of some texts, anywhere.
func SameBut(a, b *pool.Message, mark string) (bool, error) {
	same, err := Same(a, b)
	if same || err != nil {
		return same, err
	}
	left, err := said(a).AppendJSON(nil)
	if err != nil {
		return false, err
	}
	rest, err := said(b).AppendJSON(nil)
	parts := bytes.Split(left, []byte(mark))
	last := len(parts) - 1
	if err != nil || last == 0 || !bytes.HasPrefix(rest, parts[0]) {
		return false, err
	}
	rest = rest[len(parts[0]):]
	for _, p := range parts[1:last] {
		at := bytes.Index(rest, p)
		if at < 0 {
			return false, nil
		}
		rest = rest[at+len(p):]
	}
	return bytes.HasSuffix(rest, parts[last]), nil
}

// said returns the words of a message in a normal form.
func said(m *pool.Message) *pool.Message {
	out := &pool.Message{Role: m.Role, Content: saidParts(m.Content)}
	for _, c := range m.Calls {
		args := compact(c.Arguments)
		if len(args) == 0 {
			args = json.RawMessage("null")
		}
		out.Calls = append(out.Calls, pool.Call{ID: c.ID, Tool: c.Tool, Arguments: args})
	}
	if m.Result != nil {
		r := *m.Result
		r.JSON, r.Parts, r.CompactSummary = compact(r.JSON), saidParts(r.Parts), ""
		if r.JSON != nil || r.Text != "" {
			r.SHA256, r.Size, r.MediaType = pool.Hash{}, 0, ""
		}
		out.Result = &r
	}
	return out
}

func saidParts(parts []pool.Part) []pool.Part {
	out := slices.Clone(parts)
	for i := range out {
		p := &out[i]
		p.Raw = compact(p.Raw)
		switch {
		case p.Data != nil:
			p.SHA256, p.Size, p.Data = pool.HashOf(p.Data), int64(len(p.Data)), nil
		case p.Type == pool.TextPart && p.Text != "":
			p.SHA256, p.Size = pool.Hash{}, 0
		}
	}
	return out
}

// compact removes the white space from JSON. Text that is no JSON stays as it is.
func compact(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return raw
	}
	return b.Bytes()
}
