package journal

import (
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/internal/view"
)

// Ready passes the texts of a new context through the embedder's hook, and checks its title.
func (n *NewContext) Ready(s *record.Store) error {
	if err := s.Texts("title", &n.Title); err != nil {
		return err
	}
	if err := view.CheckTitle(n.Title); err != nil {
		return err
	}
	if err := s.Texts("prompt", &n.System, &n.Prompt); err != nil {
		return err
	}
	if err := s.Values("setting", &n.Settings); err != nil {
		return err
	}
	return s.Ready(n.Messages)
}
