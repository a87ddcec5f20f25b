package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/internal/view"
)

// NativeFormat is the name of the format of exported contexts in reports.
const NativeFormat = intake.NativeFormat

// Stream passes everything of the context but its rules, tools and journal to put, as it is at one moment. It holds no transaction meanwhile, so put may take
// its time. Of what a purge or gc removes meanwhile it returns ErrPurged. An error of put ends it.
func (c *ChatContext) Stream(ctx context.Context, put func(record.Streamed) error) error {
	if put == nil {
		return base.Invalidf("nothing takes the records of the stream")
	}
	at := func(fn func(kv.Tx, *base.ContextRecord) error) error { return view.At(ctx, c.at(), fn) }
	return view.Stream(c.ID, "", true, at, put)
}
