package poolstore

import (
	"strings"

	"github.com/chatctx/chatctx/pool"
)

// Speaks reports whether the result itself has content. If so, the content of its message is for people and programs only.
func Speaks(r *pool.Result) bool {
	return len(r.Parts) > 0 || len(r.JSON) > 0 || strings.TrimSpace(r.Text) != ""
}

// IsReceipt reports whether the message only records what a model took for a title, a summary or a shorter digest, or that it had no usable answer. Such a message
// has no words and is on no branch. It does not count as a message of its conversation, and it stays in the pool as long as that exists, since it was paid for.
func IsReceipt(m *pool.Message) bool {
	kind := m.Kind == "title" || m.Kind == "digest" || m.Kind == "summary" && m.Role == pool.Assistant // earlier versions counted a summary's, whose role is user
	return kind && m.Hidden && m.Unsent && len(m.Content) == 0 && m.Result == nil
}

// IsGated reports whether the message only holds a call that an agent's hook brought, until a message of the agent's session has it. It is on no branch and
// does not count as a message of its conversation.
func IsGated(m *pool.Message) bool {
	return m.Kind == GatedKind && m.Home.Segment == 0 && m.Hidden && m.Unsent
}

// GatedKind is the kind of such messages.
const GatedKind = "gated"

// Counts reports whether the message is one of its conversation.
func Counts(m *pool.Message) bool { return !IsReceipt(m) && !IsGated(m) }

// Weight returns about how many bytes a message takes.
func Weight(m *pool.Message) int {
	n := 300 + partsWeight(m.Content)
	if m.Result != nil {
		n += len(m.Result.Text) + len(m.Result.JSON) + partsWeight(m.Result.Parts)
	}
	for _, c := range m.Calls {
		n += len(c.Arguments) + len(c.Effective) + len(c.Raw)
	}
	if m.Source != nil {
		n += len(m.Source.Raw)
	}
	for _, d := range m.Meta.ProviderData {
		n += len(d)
	}
	return n
}

func partsWeight(parts []pool.Part) int {
	n := 0
	for i := range parts {
		p := &parts[i]
		n += 100 + len(p.Text) + len(p.Data) + len(p.Raw) + len(p.Signature) + len(p.Redacted) + len(p.URL)
	}
	return n
}
