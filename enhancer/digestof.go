package enhancer

import (
	"strings"

	"github.com/chatctx/chatctx/chatctx"
)

// Digest says what matters of messages, made from their words alone: the same messages give the same text.
func Digest(messages []*chatctx.DraftMessage) string {
	return strings.TrimSpace(strings.TrimPrefix(gather(messages).String(), HistoryMark))
}
