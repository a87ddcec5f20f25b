package adaptertest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Long returns a draft of n messages of about 1 KB each: questions, calls, results, answers.
func Long(provider, model string, n int) *chatctx.Draft {
	m := &maker{provider: provider, model: model}
	d := &chatctx.Draft{Settings: map[string]json.RawMessage{"model": json.RawMessage(`"` + model + `"`)}, System: "You help.",
		Tools: []record.Tool{{Name: "search"}}}
	words := strings.Repeat("Some words with \"quotes\" and a line.\n", 27)
	for i := range n {
		id := fmt.Sprint("call_", i/4)
		var msg *pool.Message
		switch i % 4 {
		case 0:
			msg = m.user(words)
		case 1:
			msg = m.calls(arguments(id, `{"query":`+string(mustJSON(words))+`}`))
		case 2:
			msg = m.result(id, words)
		default:
			msg = m.assistant(words)
		}
		entry := &chatctx.DraftMessage{}
		entry.Message = msg
		d.Messages = append(d.Messages, entry)
	}
	return d
}

func mustJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// Bench compares making the body of a branch of 10,000 messages, including its bytes, with json.Marshal of that body. The goal is at most twice the time.
func Bench(b *testing.B, s Subject) {
	d := Long(s.Provider, s.Models[0], 10000)
	body, err := s.Adapt(d)
	if err != nil {
		b.Fatal(err)
	}
	raw, _ := body.MarshalJSON()
	b.Run("adapt", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		for b.Loop() {
			d.Notes = nil
			body, err := s.Adapt(d)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := body.MarshalJSON(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("marshal", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			if _, err := json.Marshal(body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("prefix", func(b *testing.B) {
		for b.Loop() {
			body.Prefix()
		}
	})
}
