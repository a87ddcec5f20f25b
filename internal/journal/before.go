package journal

import (
	"slices"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/pool"
)

// Ready passes the texts of a new context through the embedder's hook, and checks its title.
func Ready(s *base.Store, n *record.NewContext) error {
	if err := s.Title(&n.Title); err != nil {
		return err
	}
	if err := s.Texts("prompt", &n.System, &n.Prompt); err != nil {
		return err
	}
	if err := s.Values("setting", &n.Settings); err != nil {
		return err
	}
	n.Messages = slices.Clone(n.Messages)
	for i, m := range n.Messages {
		if fresh := CopyIDs([]*pool.Message{m}, false); len(fresh) > 0 { // a new context has none of them
			n.Messages[i] = copyAs(m, fresh[m.ID])
		}
	}
	return s.Ready(n.Messages)
}
