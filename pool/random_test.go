package pool_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/uuid"

	"github.com/chatctx/chatctx/pool"
)

// maker makes valid messages of every shape, the same ones for the same seed.
type maker struct{ *rand.Rand }

func newMaker(seed uint64) maker { return maker{rand.New(rand.NewPCG(seed, 1))} }

func (r maker) maybe() bool { return r.IntN(3) == 0 }

func (r maker) id() pool.ID {
	var id pool.ID
	for i := range id {
		id[i] = byte(r.Uint32())
	}
	return id
}

func (r maker) text() string {
	texts := []string{"", "plain", " \n leading and trailing\t ", `quotes " and \ and </script>`, "é 漢字 🎉 \u2028", "\x00\x1f\x7f",
		"~tilde/slash", "\ufffd", "a < b && c > d"}
	return texts[r.IntN(len(texts))]
}

func (r maker) optText() string {
	if r.maybe() {
		return r.text()
	}
	return ""
}

func (r maker) json() json.RawMessage {
	values := []string{`null`, `"a string"`, `{}`, ` {"a": 1.0,
	"b" : [ ] }`, `{"a":1e400,"b":[1,2,{"c":"\ud800"}]}`, `[1,2]`, `12345678901234567890`, `"\u003c<&>"`, `{"type":"text","text":"x"}`,
		`{"type":"video","type":"text"}`, ` "spaced"`, `true`, "{\"\u2028\":\"<\"}"}
	return json.RawMessage(values[r.IntN(len(values))])
}

func (r maker) optJSON() json.RawMessage {
	if r.maybe() {
		return r.json()
	}
	return nil
}

func (r maker) jsonMap() map[string]json.RawMessage {
	if !r.maybe() {
		return nil
	}
	m := map[string]json.RawMessage{}
	for range r.IntN(3) {
		m[r.text()] = r.json()
	}
	return m
}

func (r maker) count() *int64 {
	if r.maybe() {
		return nil
	}
	n := int64(r.IntN(3)) * 1000
	return &n
}

func (r maker) time() pool.Time {
	times := []pool.Time{0, 1, 1_700_000_000_000_000, 1_700_000_000_120_000, -5, 253_402_300_799_999_999}
	return times[r.IntN(len(times))]
}

func (r maker) hash() pool.Hash {
	var h pool.Hash
	if r.maybe() {
		h[0], h[31] = byte(r.Uint32()), 1
	}
	return h
}

// extra are keys that no version has yet, with values of all kinds.
func (r maker) extra() map[uint64]cbor.RawMessage {
	if r.IntN(8) != 0 {
		return nil
	}
	values := [][]byte{{0x01}, {0xf6}, {0x63, 'a', 'b', 'c'}, {0x82, 0x01, 0x20}, {0xa1, 0x61, 'k', 0xf5}, {0xc1, 0x18, 0x20}, {0x18, 0x01}}
	m := map[uint64]cbor.RawMessage{}
	for range 1 + r.IntN(3) {
		m[100+r.Uint64N(1<<(5+r.UintN(50)))] = values[r.IntN(len(values))]
	}
	return m
}

func (r maker) part(calls []pool.Call) pool.Part {
	p := pool.Part{Extra: r.extra(), Name: r.optText(), MediaType: r.optText(), Size: int64(r.IntN(2))}
	switch r.IntN(7) {
	case 0, 1:
		p.Type, p.Text, p.Raw = pool.TextPart, r.text(), r.optJSON()
	case 2:
		p.Type, p.URL, p.SHA256, p.Text = pool.ImagePart, "https://example.org/a?b&c", r.hash(), r.optText()
	case 3:
		p.Type, p.URL = pool.DocumentPart, "file:///x"
	case 4:
		p.Type, p.Text, p.Signature, p.Redacted = pool.ThinkingPart, r.text(), r.optText(), r.optText()
		p.Provider, p.Model, p.Raw = r.optText(), r.optText(), r.optJSON()
	case 5:
		if len(calls) == 0 {
			return pool.Part{Type: pool.TextPart}
		}
		p.Type, p.CallID, p.Raw = pool.CallPart, calls[r.IntN(len(calls))].ID, r.optJSON()
	case 6:
		return r.foreignPart()
	}
	return p
}

func (r maker) foreignPart() pool.Part {
	switch r.IntN(4) {
	case 0:
		return pool.Part{Type: "video", Raw: json.RawMessage(`{"type":"video","n":[1,  2]}`)}
	case 1:
		return pool.Part{Type: "video", Raw: json.RawMessage(`{"type":"video"}`), Extra: r.extra(), SHA256: r.hash(), Text: r.optText()}
	case 2:
		return pool.Part{Type: "Text", Raw: json.RawMessage(`{"type":"Text"}`)}
	}
	return pool.Part{Type: "odd", Raw: r.json(), Extra: r.extra(), Name: r.optText()}
}

func (r maker) parts(calls []pool.Call) []pool.Part {
	var parts []pool.Part
	for range r.IntN(4) {
		parts = append(parts, r.part(calls))
	}
	return parts
}

func (r maker) calls() []pool.Call {
	var calls []pool.Call
	for i := range r.IntN(3) {
		calls = append(calls, pool.Call{ID: fmt.Sprint("call_", i), Tool: "tool" + r.text(), Arguments: r.optJSON(),
			Status:    []pool.Status{"", pool.Pending, pool.Approved, pool.Denied}[r.IntN(4)],
			Execution: []pool.Execution{"", pool.NotRun, pool.Running, pool.Done, pool.Failed, pool.Uncertain}[r.IntN(6)],
			Reason:    r.optText(), Raw: r.optJSON(), Provider: r.optText(), Model: r.optText(), Extra: r.extra()})
	}
	return calls
}

func (r maker) result() *pool.Result {
	res := &pool.Result{RequestID: r.text(), Text: r.optText(), JSON: r.optJSON(), IsError: r.maybe(), CompactSummary: r.optText(),
		Tool: r.optText(), Extra: r.extra()}
	if r.maybe() {
		res.Parts = r.parts(nil)
	}
	if r.maybe() && res.Text == "" && res.JSON == nil {
		res.SHA256, res.Size, res.MediaType = pool.Hash{1}, 9000, "text/plain"
	}
	return res
}

func (r maker) meta() pool.Metadata {
	if r.maybe() {
		return pool.Metadata{}
	}
	return pool.Metadata{Model: r.optText(), Provider: r.optText(), InputTokens: r.count(), OutputTokens: r.count(), CacheRead: r.count(),
		CacheWrite: r.count(), ReasoningTokens: r.count(), Usage: r.optJSON(), FinishReason: r.optText(), Error: r.optText(),
		Completed: r.time(), ProviderData: r.jsonMap(), Extra: r.extra()}
}

func (r maker) message() *pool.Message {
	m := &pool.Message{ID: r.id(), Meta: r.meta(), Created: r.time(), Kind: r.optText(), Hidden: r.maybe(), Unsent: r.maybe(),
		Unfinished: r.maybe(), AppData: r.jsonMap(), Extra: r.extra()}
	m.Role = []pool.Role{pool.System, pool.User, pool.Assistant, pool.ToolRole}[r.IntN(4)]
	switch m.Role {
	case pool.Assistant:
		m.Calls = r.calls()
	case pool.ToolRole:
		m.Result = r.result()
	}
	m.Content = r.parts(m.Calls)
	if r.maybe() {
		id := uuid.UUID(r.id())
		m.CopiedFrom = &id
	}
	if r.maybe() {
		m.Source = &pool.Source{Format: "chatgpt", Conversation: r.text(), Node: r.text(), Role: r.optText(), Extra: r.extra()}
		if r.maybe() {
			m.Source.Raw = []byte{0xff, 0, '{'}
		}
	}
	return m
}
