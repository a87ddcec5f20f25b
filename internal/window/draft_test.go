package window

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/pool"
)

// writer makes random drafts. The same seed makes the same draft.
type writer struct {
	rng   *rand.Rand
	d     *chatctx.Draft
	calls int
	late  []pool.Call // calls whose result comes later, or never
}

func newWriter(seed int64) *writer {
	return &writer{rng: rand.New(rand.NewSource(seed)), d: &chatctx.Draft{}}
}

func (w *writer) id() pool.ID {
	var id pool.ID
	binary.BigEndian.PutUint64(id[:], w.rng.Uint64())
	binary.BigEndian.PutUint64(id[8:], w.rng.Uint64())
	id[6] = id[6]&0x0f | 0x70
	return id
}

func (w *writer) add(m *pool.Message) *chatctx.DraftMessage {
	m.ID = w.id()
	dm := &chatctx.DraftMessage{Entry: pool.Entry{Message: m, Position: len(w.d.Messages) + 1}, State: enhancer.In}
	w.d.Messages = append(w.d.Messages, dm)
	return dm
}

func (w *writer) user(text string) *chatctx.DraftMessage { return w.add(pool.NewText(pool.User, text)) }

func (w *writer) assistant(text string) *chatctx.DraftMessage {
	return w.add(pool.NewText(pool.Assistant, text))
}

// use adds an answer with calls of the tools, and their results.
func (w *writer) use(results ...*pool.Result) {
	m := &pool.Message{Role: pool.Assistant}
	for range results {
		w.calls++
		m.Calls = append(m.Calls, pool.Call{ID: fmt.Sprintf("call_%d", w.calls), Tool: "run", Arguments: json.RawMessage(`{"cmd":"ls"}`)})
	}
	w.add(m)
	for i, r := range results {
		r.RequestID = m.Calls[i].ID
		w.add(&pool.Message{Role: pool.ToolRole, Result: r})
	}
}

func (w *writer) words(n int) string {
	list := strings.Fields("we decided to use the parser since it must never fail error 404 at https://example.com/a order ORD-1234 and user_42 the result is done " +
		"So: um, you know, like, this is what I mean. For example, one. As I said before, it is important to note that nothing is lost.")
	var b strings.Builder
	for range n {
		b.WriteString(list[w.rng.Intn(len(list))])
		b.WriteByte(" \n"[min(1, w.rng.Intn(12)/11)])
	}
	return b.String()
}

// output returns a random tool output of some kind and about n bytes.
func (w *writer) output(n int) *pool.Result {
	var b strings.Builder
	switch w.rng.Intn(8) {
	case 0:
		b.WriteString(`{"items":[`)
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, `{"id":%d,"name":"item %d","none":null,"empty":"","list":[]},`, i, i)
		}
		b.WriteString(`{}],"next":null}`)
		return &pool.Result{JSON: json.RawMessage(b.String())}
	case 1:
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, "2024-05-01 10:%02d:%02d INFO request %d served\n", i/60%60, i%60, i/3)
		}
	case 2:
		b.WriteString("Traceback (most recent call last):\n")
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, "  File \"/app/m%d.py\", line %d, in f\n    call(%d)\n", i, i, i)
		}
		b.WriteString("ValueError: bad value\n")
		return &pool.Result{Text: b.String(), IsError: true}
	case 3:
		raw := make([]byte, n)
		w.rng.Read(raw)
		return &pool.Result{Text: string(raw)}
	case 4:
		raw := make([]byte, n)
		w.rng.Read(raw)
		return &pool.Result{Text: base64.StdEncoding.EncodeToString(raw)}
	case 5:
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, "key%d: value\nnothing%d: null\n- item\n", i, i)
		}
	case 6:
		return &pool.Result{Parts: []pool.Part{{Type: pool.TextPart, Text: w.words(n / 6)}, {Type: pool.ImagePart, MediaType: "image/png", Data: bytes.Repeat([]byte{1, 2, 3}, 50)}}}
	default:
		b.WriteString(w.words(n / 6))
		b.WriteString("\n```\ncode stays\n```\n" + w.words(n/12))
	}
	return &pool.Result{Text: b.String()}
}

func (w *writer) size() int { return []int{10, 300, 3000, 6000, 20000}[w.rng.Intn(5)] }

// random adds n random turns or single messages, in every order that a branch can have.
func (w *writer) random(n int) *writer {
	for range n {
		switch w.rng.Intn(12) {
		case 0:
			w.add(pool.NewText(pool.System, w.words(10)))
		case 1:
			w.assistant(w.words(w.rng.Intn(300)))
		case 2: // a result whose call is missing
			r := w.output(w.size())
			r.RequestID = "gone"
			w.add(&pool.Message{Role: pool.ToolRole, Result: r})
		case 3: // a call whose result comes late or never
			c := pool.Call{ID: fmt.Sprintf("late_%d", len(w.d.Messages)), Tool: "slow", Arguments: json.RawMessage(`{}`)}
			w.add(&pool.Message{Role: pool.Assistant, Calls: []pool.Call{c}})
			w.late = append(w.late, c)
		case 4:
			if len(w.late) > 0 {
				r := w.output(w.size())
				r.RequestID = w.late[0].ID
				w.late = w.late[1:]
				w.add(&pool.Message{Role: pool.ToolRole, Result: r})
			}
		default:
			w.user(w.words(3 + w.rng.Intn(60)))
			for range w.rng.Intn(3) {
				results := []*pool.Result{w.output(w.size())}
				if w.rng.Intn(3) == 0 {
					results = append(results, w.output(w.size()))
				}
				if w.rng.Intn(6) == 0 {
					results[0].CompactSummary = "short: " + w.words(5)
				}
				w.use(results...)
			}
			if w.rng.Intn(8) > 0 {
				w.assistant(w.words(5 + w.rng.Intn(200)))
			}
		}
	}
	for _, m := range w.d.Messages {
		if w.rng.Intn(25) == 0 {
			m.Pinned, m.State = true, enhancer.Pinned
		}
		if w.rng.Intn(60) == 0 {
			m.Unsent = true
		}
	}
	return w
}

// fresh copies a draft as the store would return it again: with the session, without the effects of the steps.
func fresh(d *chatctx.Draft) *chatctx.Draft {
	c := *d
	c.Messages, c.Notes = nil, nil
	for _, m := range d.Messages {
		n := *m
		message := *m.Message
		n.Message, n.Tokens = &message, 0
		c.Messages = append(c.Messages, &n)
	}
	return &c
}

// sent returns the parts of a draft that go to a provider, as text that a test can compare.
func sent(d *chatctx.Draft) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n%v\n", d.System, d.Prompt, d.Tools)
	for _, m := range d.Messages {
		fmt.Fprintf(&b, "%s %s %q cache=%v\n", m.ID, m.Kind, content(m.Message), m.Cache)
	}
	return b.String()
}

// memory keeps counts in memory.
type memory struct{ counts map[string]map[pool.ID]int }

func (m *memory) Counts(_ context.Context, encoding string, ids []pool.ID) ([]int, error) {
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = m.counts[encoding][id]
	}
	return out, nil
}

func (m *memory) SetCounts(_ context.Context, encoding string, ids []pool.ID, counts []int) error {
	if m.counts[encoding] == nil {
		m.counts[encoding] = map[pool.ID]int{}
	}
	for i, id := range ids {
		m.counts[encoding][id] = counts[i]
	}
	return nil
}
