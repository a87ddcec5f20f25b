package intake

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// fileRecord is an ImportedFile in the store. It is not on the journal: it holds only while the records of its conversations are unchanged, and undoing an
// import changes these.
type fileRecord struct {
	Reader        uint64             `cbor:"10,keyasint"` // the numbers differ from those of SourceRecord, which lies in the same bucket
	Conversations []fileConversation `cbor:"11,keyasint"`
	Report        []byte             `cbor:"12,keyasint"`
	SHA256        pool.Hash          `cbor:"13,keyasint"`
}

type fileConversation struct {
	Format       string    `cbor:"1,keyasint"`
	Conversation string    `cbor:"2,keyasint"`
	Context      pool.ID   `cbor:"3,keyasint"`
	Fingerprint  pool.Hash `cbor:"4,keyasint"`
}

// fileKey is the key of a file in the source bucket; with the zero hash it is the beginning of the keys of all files with that name and size.
func fileKey(name string, size int64, sum pool.Hash) []byte {
	key := base.SourceKey("file", fmt.Sprintf("%d %s", size, name), sum.String())
	if sum == (pool.Hash{}) {
		key = key[:len(key)-len(sum.String())]
	}
	return key
}

// Note makes the run's next Import remember a file. All its conversations must have been given to the run before.
func (r *ImportRun) Note(f record.ImportedFile) { r.files = append(r.files, f) }

// noteFile remembers a file if all its conversations are known, and nothing of them was left out since it was purged here.
func noteFile(st *journal.StoreTxn, f *record.ImportedFile) error {
	rec := fileRecord{Reader: f.Reader, Report: f.Report, SHA256: f.SHA256}
	keys := make([]kv.Key, len(f.Conversations))
	for i, l := range f.Conversations {
		keys[i] = kv.Key{Bucket: base.SourceBucket, Key: base.SourceKey(l.Format, l.Conversation, "")}
	}
	if err := kv.Fetch(st.Tx, keys...); err != nil {
		return err
	}
	for _, l := range f.Conversations {
		var src base.SourceRecord
		ok, err := base.GetRecord(st.Tx, base.SourceBucket, base.SourceKey(l.Format, l.Conversation, ""), &src)
		if err != nil || !ok || l.Conversation == "" || src.Fingerprint == (pool.Hash{}) {
			return err
		}
		rec.Conversations = append(rec.Conversations, fileConversation{l.Format, l.Conversation, src.Context, src.Fingerprint})
	}
	return base.PutRecord(st.Tx, base.SourceBucket, fileKey(f.Name, f.Size, f.SHA256), rec)
}

// KnownFile returns what was noted of a file and the contexts of its conversations, in order. It returns nil if the file must be read: it was not noted, or
// one of its conversations is gone, or was imported in another version since. f has the name, size and reader; sum returns the SHA-256 and
// is called only if a file of that name and size was noted.
func KnownFile(ctx context.Context, s *base.Store, f record.ImportedFile, sum func() (pool.Hash, error)) (*record.ImportedFile, []record.Imported, error) {
	candidate := false
	err := s.DB.View(ctx, func(tx kv.Tx) error {
		candidate = false
		return tx.Scan(base.SourceBucket, kv.Prefix(fileKey(f.Name, f.Size, pool.Hash{})), func(_, _ []byte) error {
			candidate = true
			return kv.ErrStop
		})
	})
	if err != nil || !candidate {
		return nil, nil, err
	}
	if f.SHA256, err = sum(); err != nil {
		return nil, nil, err
	}
	var out []record.Imported
	found := false
	err = s.DB.View(ctx, func(tx kv.Tx) error {
		var rec fileRecord
		out, f.Conversations = nil, nil
		ok, err := base.GetRecord(tx, base.SourceBucket, fileKey(f.Name, f.Size, f.SHA256), &rec)
		if found = ok && rec.Reader == f.Reader; err != nil || !found {
			return err
		}
		f.Report = rec.Report
		for _, c := range rec.Conversations {
			done, err := c.now(tx)
			if found = done != nil; err != nil || !found {
				return err
			}
			out = append(out, *done)
			f.Conversations = append(f.Conversations, record.SourceLink{Format: c.Format, Conversation: c.Conversation})
		}
		return nil
	})
	if err != nil || !found {
		return nil, nil, err
	}
	return &f, out, nil
}

// now returns the conversation as it is today, nil if it has changed since.
func (c *fileConversation) now(tx kv.Tx) (*record.Imported, error) {
	var src base.SourceRecord
	ok, err := base.GetRecord(tx, base.SourceBucket, base.SourceKey(c.Format, c.Conversation, ""), &src)
	if err != nil || !ok || src.Context != c.Context || src.Fingerprint != c.Fingerprint {
		return nil, err
	}
	rec, _, err := base.GetContext(tx, c.Context)
	if err != nil || rec == nil {
		return nil, err
	}
	return &record.Imported{Context: c.Context, Title: rec.Title, Branches: int(rec.Branches), Trashed: rec.Trashed != 0}, nil
}

// IsFileNote reports whether a key of the source bucket is that of a file that was imported.
func IsFileNote(key []byte) bool { return bytes.HasPrefix(key, []byte("\x04file")) }

// SourceOf reports whether a record of the source bucket is about one of the wanted contexts: a message, a conversation, or a file that held one.
func SourceOf(value []byte, wanted func(context pool.ID) bool) bool {
	if n, ok := base.ParseSourceNode(value); ok {
		return wanted(n.Context)
	}
	var conversation base.SourceRecord
	if stored.Unmarshal(value, &conversation) == nil && wanted(conversation.Context) {
		return true
	}
	var file fileRecord
	return stored.Unmarshal(value, &file) == nil && slices.ContainsFunc(file.Conversations, func(c fileConversation) bool { return wanted(c.Context) })
}
