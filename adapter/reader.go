package adapter

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// Reader says what a model gets of a message, wherever on a branch the message is. It is meant for counting: it ignores what the messages before change (names
// and ids that are taken, results that were awaited).
type Reader struct {
	rules    *Rules
	settings *Settings
	inForce  map[string]json.RawMessage
}

// Read returns a message as it is sent: with the words and the image sizes that are sent, and with the texts that stand for anything else. It returns nil if
// nothing is sent. artifact reads artifacts from the store.
func (r *Reader) Read(m *pool.Message, artifact func(pool.Hash) ([]byte, error)) *pool.Message {
	d := &chatctx.Draft{Settings: r.inForce, Artifact: artifact}
	b := &builder{Conversation: &Conversation{draft: d, rules: r.rules, names: newNames(r.rules.Tools)}, ids: newMapping(r.rules.IDs), calls: map[string][]*Call{}, told: map[string]bool{}}
	out := &pool.Message{Role: m.Role}
	switch m.Role {
	case pool.ToolRole:
		if m.Result == nil {
			return nil
		}
		out.Content = r.parts(out, b.answerOf(&Call{Call: &pool.Call{}}, m).Items)
	case pool.Assistant:
		if m.Kind == "summary" { // what the provider made goes back to it as it is
			out.Content = b.compaction(m)
			break
		}
		b.assistant(m)
		for _, t := range b.Turns {
			out.Content = append(out.Content, r.parts(out, t.Items)...)
		}
	case pool.System, "developer":
		if text := b.texts(m); text != "" {
			out.Content = []pool.Part{{Type: pool.TextPart, Text: text}}
		}
	default:
		out.Content = r.parts(out, b.items(m))
	}
	if len(out.Content) == 0 && len(out.Calls) == 0 {
		return nil
	}
	return out
}

// parts returns items as parts, and adds their calls to the message.
func (r *Reader) parts(to *pool.Message, items []Item) []pool.Part {
	var parts []pool.Part
	for i := range items {
		switch it := &items[i]; {
		case it.Media != nil:
			parts = append(parts, pool.Part{Type: it.Media.Kind, MediaType: it.Media.Type, Data: it.Media.Data, URL: it.Media.URL})
		case it.Thinking != nil:
			if !r.rules.RawLost || leads(items[i+1:]) {
				parts = append(parts, *it.Thinking)
			}
		case it.Raw != nil:
			if !r.rules.RawLost {
				parts = append(parts, *it.Raw)
			}
		case it.Call != nil:
			to.Calls = append(to.Calls, pool.Call{ID: it.Call.ID, Tool: it.Call.Name, Arguments: it.Call.Arguments})
		default:
			parts = append(parts, pool.Part{Type: pool.TextPart, Text: it.Text})
		}
	}
	return parts
}

// leads reports whether an item that is sent follows thinking.
func leads(rest []Item) bool {
	return len(rest) > 0 && rest[0].Thinking == nil && rest[0].Raw == nil
}

// Name returns a word for everything that Read depends on, except the message.
func (r *Reader) Name() string {
	s := r.settings
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []string{r.rules.Provider, BareModel(s, r.rules.Provider), s.Profile, string(s.Extra["store"]), string(r.inForce[ScaleImages])}))
	return hex.EncodeToString(sum[:6])
}

// Beside returns the texts that each request has besides the conversation: the tools and the answer format of the settings.
func (r *Reader) Beside() []string {
	var texts []string
	for _, raw := range r.settings.ExtraTools() {
		texts = append(texts, string(raw))
	}
	if f := r.settings.Format; f != nil && f.Schema != nil {
		texts = append(texts, string(f.Schema))
	}
	return texts
}
