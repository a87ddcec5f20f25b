package care

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chatctx/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
	"github.com/chatctx/chatctx/pool"
)

// AllBuckets are all that a store has.
var AllBuckets = append([]string{record.MetaBucket, record.ContextBucket, record.RecentBucket, record.SourceBucket, record.OpenBucket, record.LooseBucket, record.LabelBucket, pool.ArtifactBucket,
	index.WaitingBucket, index.DocBucket, index.TermBucket}, OwnBuckets...)

// CopyOptions of CopyStore.
type CopyOptions struct {
	// Keep leaves the store that is copied in use. The copy is then a store of its own, with an id of its own. Without it the old one says from the beginning of the
	// copy on where it went, and opens no more.
	Keep bool
	// Progress, if not nil, is called now and then with how many records are done.
	Progress func(records int)
}

// Copied says what CopyStore did.
type Copied struct {
	Records int
	Digest  pool.Hash // over all records, of both stores
	Stats   Stats     // of the copy
}

// CopyStore makes at to a store with everything that the one at from has: journal, undo, search index and all. Who works on something there works on nothing here. The target is not there yet, or
// an empty store, or what an earlier copy of the same store began, which is then gone on with: ErrConflict for anything else. In the end a full check finds nothing, and both sides have one
// digest, or the error says what differs.
func CopyStore(ctx context.Context, from, to string, o record.Options, co CopyOptions) (*Copied, error) {
	if from == to {
		return nil, record.Invalidf("a store is not copied onto itself")
	}
	c := &copying{ctx: kv.WithPurpose(ctx, "restore"), CopyOptions: co, from: from, to: to}
	o.Create = false
	var err error
	if c.source, err = c.open(from, o, moveMark); err != nil {
		return nil, err
	}
	defer c.source.Close()
	o.Create = true
	if c.target, err = c.open(to, o, copyMark); err != nil {
		return nil, err
	}
	defer c.target.Close()
	if err := c.begin(); err != nil {
		return nil, err
	}
	if err := c.run(); err != nil {
		return nil, err
	}
	return c.end(o)
}

// While a store is copied the format of the copy, and where it is moved that of the old one, gives way to a mark: nothing else opens it. Behind the mark stands which store it is, or where it goes.
const (
	copyMark = view.CopyMark
	moveMark = view.MoveMark
)

// copying is a CopyStore under way.
type copying struct {
	CopyOptions
	ctx            context.Context
	from, to       string
	source, target kv.DB
	id             pool.ID // of the store that is copied
	records        int
	sum            pool.Hash // of what was read last
}

// open opens a store, or one with a mark.
func (c *copying) open(path string, o record.Options, mark string) (kv.DB, error) {
	db, err := openDB(path, o, func(tx kv.Tx) error {
		raw, err := tx.Get(record.MetaBucket, record.MetaFormat)
		if err != nil || bytes.HasPrefix(raw, []byte(mark)) {
			return err
		}
		return view.CheckVersion(raw)
	})
	if err != nil {
		return nil, err
	}
	// A file is looked at when it is first read.
	if err := db.View(c.ctx, func(tx kv.Tx) error { _, err := tx.Get(record.MetaBucket, record.MetaFormat); return err }); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// begin looks at both and sets the marks.
func (c *copying) begin() error {
	err := c.source.View(c.ctx, func(tx kv.Tx) error {
		raw, err := tx.Get(record.MetaBucket, record.MetaStore)
		if err == nil && len(raw) != len(c.id) {
			err = record.Damaged("the store has no id")
		}
		copy(c.id[:], raw)
		return err
	})
	if err != nil {
		return err
	}
	mark := append([]byte(copyMark), c.id.String()...)
	err = c.target.Update(c.ctx, func(tx kv.RwTx) error {
		format, err := tx.Get(record.MetaBucket, record.MetaFormat)
		if err != nil || bytes.Equal(format, mark) {
			return err
		}
		if bytes.HasPrefix(format, []byte(copyMark)) {
			return record.Conflict("%s holds the beginning of a copy of another store: remove it first", kv.Shown(c.to))
		}
		if err := untouched(tx); err != nil {
			return record.Conflict("%s holds something already (%v): a copy goes into what is empty", kv.Shown(c.to), err)
		}
		return tx.Put(record.MetaBucket, record.MetaFormat, mark)
	})
	if err != nil || c.Keep {
		return err
	}
	return c.markMoved()
}

func (c *copying) markMoved() error {
	return c.source.Update(c.ctx, func(tx kv.RwTx) error {
		return tx.Put(record.MetaBucket, record.MetaFormat, []byte(moveMark+kv.Shown(c.to)))
	})
}

// untouched says what a store holds that is not as init leaves it.
func untouched(tx kv.Tx) error {
	for _, bucket := range AllBuckets {
		if bucket == record.MetaBucket {
			continue
		}
		err := tx.Scan(bucket, kv.Range{}, func(_, _ []byte) error { return fmt.Errorf("records in %s", bucket) })
		if err != nil {
			return err
		}
	}
	raw, err := tx.Get(record.MetaBucket, record.MetaJournal)
	if err == nil && raw != nil {
		err = errors.New("a journal")
	}
	return err
}

// run copies until the target has what the source has: a program that had the old store open before the mark may have changed it meanwhile.
func (c *copying) run() error {
	const mostRounds = 5
	for round := 0; ; round++ {
		if err := c.snapshot(func(tx kv.Tx) error { return c.pass(tx) }); err != nil {
			return err
		}
		if c.Keep {
			return nil
		}
		copied := c.sum
		if err := c.source.View(c.ctx, func(tx kv.Tx) (err error) { _, c.sum, err = digest(tx); return err }); err != nil {
			return err
		}
		if copied == c.sum {
			return nil
		}
		if round == mostRounds {
			return record.Conflict("%s is still written to by a program that had opened it before: end that, and copy again", kv.Shown(c.from))
		}
	}
}

// snapshot gives one state of the source: a copy of the file, so that nobody waits for the length of it, or one transaction of the server.
func (c *copying) snapshot(fn func(kv.Tx) error) error {
	k, is := c.source.(kv.Keeper)
	if !is {
		return c.source.View(c.ctx, fn)
	}
	dir, err := os.MkdirTemp(filepath.Dir(c.from), ".chatctx-copy-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f, err := os.OpenFile(filepath.Join(dir, "snapshot.db"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(k.Backup(kv.WithPurpose(c.ctx, "backup"), f), f.Close()); err != nil {
		return err
	}
	db, err := boltkv.Open(f.Name(), boltkv.Options{ReadOnly: true, IdleHold: -1})
	if err != nil {
		return err
	}
	return errors.Join(db.View(c.ctx, fn), db.Close())
}

// pair is a record.
type pair struct{ key, value []byte }

const (
	copyPage  = 2000
	copyBytes = 4 << 20
)

// pass makes the target's records those of the source.
func (c *copying) pass(tx kv.Tx) error {
	sum := &summer{}
	c.records = 0
	for _, bucket := range AllBuckets {
		var page []pair
		size, from := 0, []byte(nil)
		flush := func(to []byte) error {
			if err := c.write(bucket, kv.Range{From: from, To: to}, page); err != nil {
				return err
			}
			if c.records += len(page); c.Progress != nil {
				c.Progress(c.records)
			}
			page, size, from = page[:0], 0, to
			return nil
		}
		err := tx.Scan(bucket, kv.Range{}, func(key, value []byte) error {
			value, err := carried(bucket, key, value)
			if err != nil || value == nil {
				return err
			}
			sum.add(bucket, key, value)
			page = append(page, pair{bytes.Clone(key), bytes.Clone(value)})
			if size += len(key) + len(value); len(page) < copyPage && size < copyBytes {
				return nil
			}
			return flush(append(bytes.Clone(key), 0))
		})
		if err == nil {
			err = flush(nil)
		}
		if err != nil {
			return err
		}
	}
	c.sum = sum.hash()
	return nil
}

// carried is a record as a copy has it, nil for one that it has not. A claim of a program ends: it cannot be renewed here.
func carried(bucket string, key, value []byte) ([]byte, error) {
	switch {
	case bucket == record.MetaBucket && (bytes.Equal(key, record.MetaFormat) || bytes.Equal(key, record.MetaStore)):
		return nil, nil
	case bucket != record.ClaimBucket:
		return value, nil
	}
	claim := &record.Claim{}
	if err := record.DecMode.Unmarshal(value, claim); err != nil {
		return nil, record.Damaged("the claim %x: %v", key, err)
	}
	if claim.Task != (pool.ID{}) { // a call that a sub-context answers, which goes along
		return value, nil
	}
	return record.EncodeRecord(&record.Claim{Program: claim.Program, Since: claim.Since, Renewed: 1})
}

// write makes a range of the target hold these records and no others.
func (c *copying) write(bucket string, r kv.Range, page []pair) error {
	return c.target.Update(c.ctx, func(tx kv.RwTx) error {
		have, err := map[string][]byte{}, error(nil)
		err = tx.Scan(bucket, r, func(key, value []byte) error {
			have[string(key)] = bytes.Clone(value)
			return nil
		})
		if err != nil {
			return err
		}
		for _, p := range page {
			old, there := have[string(p.key)]
			delete(have, string(p.key))
			if there && bytes.Equal(old, p.value) {
				continue
			}
			if err := tx.Put(bucket, p.key, p.value); err != nil {
				return err
			}
		}
		for key, value := range have {
			if keep, err := carried(bucket, []byte(key), value); err != nil || keep == nil {
				continue
			}
			if err := tx.Delete(bucket, []byte(key)); err != nil {
				return err
			}
		}
		return nil
	})
}

// end proves that the copy is one, and has it open.
func (c *copying) end(o record.Options) (*Copied, error) {
	out := &Copied{Records: c.records, Digest: c.sum}
	var sum pool.Hash
	err := c.target.View(c.ctx, func(tx kv.Tx) (err error) { out.Records, sum, err = digest(tx); return err })
	if err != nil {
		return nil, err
	}
	if sum != c.sum {
		return nil, record.Damaged("the copy in %s has another digest than %s: copy again", kv.Shown(c.to), kv.Shown(c.from))
	}
	s := newStore(c.target, o)
	var problem *Problem
	err = Check(c.ctx, s, true, func(p Problem) {
		if problem == nil && p.Invariant != 9 { // the format is not there yet
			problem = &p
		}
	})
	if err == nil && problem != nil {
		err = record.Damaged("the copy is as %s, and a check finds in it: %s: %s", kv.Shown(c.from), problem.Where, problem.Text)
	}
	if err != nil {
		return nil, err
	}
	stats, err := Measure(c.ctx, s)
	if err != nil {
		return nil, err
	}
	out.Stats = *stats
	id := c.id
	if c.Keep {
		id = pool.NewID()
	}
	return out, c.target.Update(c.ctx, func(tx kv.RwTx) error {
		if err := tx.Put(record.MetaBucket, record.MetaStore, id[:]); err != nil {
			return err
		}
		format, err := json.Marshal(record.FormatVersion)
		if err != nil {
			return err
		}
		return tx.Put(record.MetaBucket, record.MetaFormat, format)
	})
}

// digest is that of all records that a copy has.
func digest(tx kv.Tx) (n int, sum pool.Hash, err error) {
	s := &summer{}
	for _, bucket := range AllBuckets {
		err := tx.Scan(bucket, kv.Range{}, func(key, value []byte) error {
			value, err := carried(bucket, key, value)
			if err == nil && value != nil {
				n++
				s.add(bucket, key, value)
			}
			return err
		})
		if err != nil {
			return 0, sum, err
		}
	}
	return n, s.hash(), nil
}

// summer makes a digest of records, whose lengths count.
type summer struct{ sum [sha256.Size]byte }

func (s *summer) add(bucket string, key, value []byte) {
	h := sha256.New()
	h.Write(s.sum[:])
	for _, part := range [][]byte{[]byte(bucket), key, value} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	h.Sum(s.sum[:0])
}

func (s *summer) hash() pool.Hash { return pool.Hash(s.sum) }
