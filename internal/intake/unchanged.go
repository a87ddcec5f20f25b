package intake

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/pool"
)

// Unchanged reports whether a conversation was imported with that digest of its record and is still there: then importing it adds nothing. Known in its
// result is 0, since only the file tells how many messages it has.
func Unchanged(ctx context.Context, s *base.Store, from record.SourceLink, digest pool.Hash) (record.Imported, bool, error) {
	var res record.Imported
	same := false
	err := s.DB.View(ctx, func(tx kv.Tx) error {
		var src base.SourceRecord
		same = false
		ok, err := base.GetRecord(tx, base.SourceBucket, base.SourceKey(from.Format, from.Conversation, ""), &src)
		if err != nil || !ok || from.Conversation == "" || digest == (pool.Hash{}) || src.Digest != digest {
			return err
		}
		rec, _, err := base.GetContext(tx, src.Context)
		if err != nil || rec == nil {
			return err
		}
		same = true
		res = record.Imported{Context: src.Context, Title: rec.Title, Branches: int(rec.Branches), Trashed: rec.Trashed != 0}
		return nil
	})
	return res, same, err
}
