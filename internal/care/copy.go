package care

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/internal/leftover"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// AllBuckets lists all buckets of a store.
var AllBuckets = append([]string{base.MetaBucket, base.ContextBucket, base.RecentBucket, base.SourceBucket, base.OpenBucket, base.LooseBucket, base.LabelBucket, base.GoneBucket, poolstore.ArtifactBucket,
	index.WaitingBucket, index.DocBucket, index.TermBucket}, OwnBuckets...)

// Reopen takes back a store that has moved, or begun to: it opens again as it was, in today's form, and the copy goes on by itself. It returns where the store
// had moved to, ErrConflict if it has not moved, and fs.ErrPermission if it is on a server and this user is not its owner.
func Reopen(ctx context.Context, path string, o record.OpenOptions) (to string, err error) {
	c := &copying{ctx: engine.WithPurpose(ctx, "restore"), from: path}
	o.Create = false
	if c.source, err = c.open(path, o, moveMark); err != nil {
		return "", err
	}
	defer c.source.Close()
	if err := owned(c.ctx, c.source); err != nil {
		return "", err
	}
	err = c.source.Update(c.ctx, func(tx kv.RwTx) error {
		format, err := tx.Get(base.MetaBucket, base.MetaFormat)
		place, moved := bytes.CutPrefix(format, []byte(moveMark))
		if err == nil && !moved {
			err = base.Conflict("%s has not moved", engine.Shown(path))
		}
		if err != nil {
			return err
		}
		to = string(place)
		return base.BringUp(tx, base.OldestVersion)
	})
	return to, err
}

// owned returns fs.ErrPermission if a store is on a server and this user is not its owner.
func owned(ctx context.Context, db kv.DB) error {
	g, is := db.(engine.Granter)
	if !is {
		return nil
	}
	is, err := g.Owns(ctx)
	if err == nil && !is {
		err = fmt.Errorf("%w: only an owner of the store copies it from the server: become one (chatctx grant owner USER), or take conversations along with chatctx export", fs.ErrPermission)
	}
	return err
}

// CopyStore copies the store at from to a store at to, with its journal, undo, search index and everything else. Programs' claims end in the copy. The
// target must not exist, be an empty store, or be an unfinished copy of the same store, which CopyStore then continues; else it returns ErrConflict. At the
// end it checks the copy in full and compares the digests of both; its error names the first problem. A store on a server is copied by its owner alone, else
// CopyStore returns fs.ErrPermission.
func CopyStore(ctx context.Context, from, to string, o record.OpenOptions, co record.CopyOptions) (*record.Copied, error) {
	if from == to {
		return nil, base.Invalidf("a store cannot be copied onto itself: name another one")
	}
	c := &copying{ctx: engine.WithPurpose(ctx, "restore"), CopyOptions: co, from: from, to: to}
	o.Create = false
	var err error
	mark := moveMark
	if co.Keep {
		mark = noMark
	}
	if c.source, err = c.open(from, o, mark); err != nil {
		return nil, err
	}
	defer c.source.Close()
	if err := owned(c.ctx, c.source); err != nil {
		return nil, err
	}
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

// During a copy, a mark replaces the format number of the copy and, if the store moves, of the original, so that nothing else opens them. Behind the mark
// stands the store's id or its new place.
const (
	copyMark = base.CopyMark
	moveMark = base.MoveMark
	noMark   = "\x00" // no store has it
)

// copying is a CopyStore under way.
type copying struct {
	record.CopyOptions
	ctx            context.Context
	from, to       string
	source, target kv.DB
	id             pool.ID // of the original
	records        int
	sum            pool.Hash // digest of the last pass
}

// open opens a store, or one with the mark.
func (c *copying) open(path string, o record.OpenOptions, mark string) (kv.DB, error) {
	db, err := openDB(path, o, func(tx kv.Tx) error {
		raw, err := tx.Get(base.MetaBucket, base.MetaFormat)
		if err != nil || bytes.HasPrefix(raw, []byte(mark)) {
			return err
		}
		_, err = base.Version(raw)
		return err
	})
	if err != nil {
		return nil, err
	}
	// The first read checks a file.
	if err := db.View(c.ctx, func(tx kv.Tx) error { _, err := tx.Get(base.MetaBucket, base.MetaFormat); return err }); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// begin checks both stores and sets the marks.
func (c *copying) begin() error {
	err := c.source.View(c.ctx, func(tx kv.Tx) error {
		raw, err := tx.Get(base.MetaBucket, base.MetaStore)
		if err == nil && len(raw) != len(c.id) {
			err = base.Damaged("the store has no id")
		}
		copy(c.id[:], raw)
		return err
	})
	if err != nil {
		return err
	}
	mark := append([]byte(copyMark), c.id.String()...)
	err = c.target.Update(c.ctx, func(tx kv.RwTx) error {
		format, err := tx.Get(base.MetaBucket, base.MetaFormat)
		if err != nil || bytes.Equal(format, mark) {
			return err
		}
		if bytes.HasPrefix(format, []byte(copyMark)) {
			return base.Conflict("%s holds the beginning of a copy of another store: remove it first", engine.Shown(c.to))
		}
		if err := untouched(tx); err != nil {
			return base.Conflict("%s holds something already (%v): a copy goes into what is empty", engine.Shown(c.to), err)
		}
		return tx.Put(base.MetaBucket, base.MetaFormat, mark)
	})
	if err != nil || c.Keep {
		return err
	}
	return c.markMoved()
}

func (c *copying) markMoved() error {
	return c.source.Update(c.ctx, func(tx kv.RwTx) error {
		// whoever takes the store back finds it in today's form
		if err := base.BringUp(tx, base.OldestVersion); err != nil {
			return err
		}
		return tx.Put(base.MetaBucket, base.MetaFormat, []byte(moveMark+engine.Shown(c.to)))
	})
}

// untouched returns an error that names what an otherwise new store already holds.
func untouched(tx kv.Tx) error {
	for _, bucket := range AllBuckets {
		if bucket == base.MetaBucket {
			continue
		}
		err := tx.Scan(bucket, kv.Range{}, func(_, _ []byte) error { return fmt.Errorf("records in %s", bucket) })
		if err != nil {
			return err
		}
	}
	raw, err := tx.Get(base.MetaBucket, base.MetaJournal)
	if err == nil && raw != nil {
		err = errors.New("a journal")
	}
	return err
}

// run copies until the target equals the source: a program that opened the old store before the mark may still change it.
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
			return base.Conflict("%s is still written to by a program that had opened it before: end that, and copy again", engine.Shown(c.from))
		}
	}
}

// snapshot gives fn one state of the source: on a server one transaction, else a copy of the file, so that other programs do not wait for the whole copy.
func (c *copying) snapshot(fn func(kv.Tx) error) error {
	k, is := c.source.(kv.Keeper)
	if !is {
		return c.source.View(c.ctx, fn)
	}
	dir, err := os.MkdirTemp(filepath.Dir(c.from), leftover.Name("copy"))
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f, err := os.OpenFile(filepath.Join(dir, "snapshot.db"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(k.Backup(engine.WithPurpose(c.ctx, "backup"), f), f.Close()); err != nil {
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

// pass makes the target's records equal to the source's.
func (c *copying) pass(tx kv.Tx) error {
	tx = branchstore.WithLongKeys(tx)
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

// carried returns the value that the copy has for a record, nil if it leaves the record out. A program's claim ends, since the program cannot renew it in
// the copy.
func carried(bucket string, key, value []byte) ([]byte, error) {
	switch {
	case bucket == base.MetaBucket && (bytes.Equal(key, base.MetaFormat) || bytes.Equal(key, base.MetaStore)):
		return nil, nil
	case bucket != base.ClaimBucket:
		return value, nil
	}
	claim := &record.Claim{}
	if err := stored.Unmarshal(value, claim); err != nil {
		return nil, base.Damaged("the claim %x: %v", key, err)
	}
	if claim.Task != (pool.ID{}) { // the claim of a call that a sub-context answers; the sub-context is copied too
		return value, nil
	}
	return base.EncodeRecord(&record.Claim{Program: claim.Program, Since: claim.Since, Renewed: 1})
}

// write makes a range of the target hold exactly these records.
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

// end checks that the copy equals the original, and makes it a store that opens.
func (c *copying) end(o record.OpenOptions) (*record.Copied, error) {
	out := &record.Copied{Records: c.records, Digest: c.sum}
	var sum pool.Hash
	err := c.target.View(c.ctx, func(tx kv.Tx) (err error) { out.Records, sum, err = digest(tx); return err })
	if err != nil {
		return nil, err
	}
	if sum != c.sum {
		return nil, base.Damaged("the copy in %s has another digest than %s: copy again", engine.Shown(c.to), engine.Shown(c.from))
	}
	w := &base.Warnings{}
	s := newStore(c.target, o, base.NewFormat(w), w)
	var problem *record.Problem
	err = Check(c.ctx, s, true, func(p record.Problem) {
		if problem == nil && p.Invariant != 9 { // the copy has no format yet
			problem = &p
		}
	})
	if err == nil && problem != nil {
		err = base.Damaged("the copy is as %s, and a check finds in it: %s: %s", engine.Shown(c.from), problem.Where, problem.Text)
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
		if err := tx.Put(base.MetaBucket, base.MetaStore, id[:]); err != nil {
			return err
		}
		format, err := json.Marshal(base.FormatVersion)
		if err != nil {
			return err
		}
		return tx.Put(base.MetaBucket, base.MetaFormat, format)
	})
}

// digest returns the number and digest of all records that a copy has.
func digest(tx kv.Tx) (n int, sum pool.Hash, err error) {
	tx = branchstore.WithLongKeys(tx)
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

// summer computes the digest of records, lengths included.
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
