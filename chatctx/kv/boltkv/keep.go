package boltkv

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/chatctx/chatctx/internal/leftover"
)

var _ kv.Keeper = (*handle)(nil)

// A rewrite is due when at least duePages pages and one in duePart are free: bbolt writes the list of free pages with each commit.
const (
	duePages = 5000
	duePart  = 4
)

// copyBatch is how many bytes a rewrite puts into one transaction.
const copyBatch = 8 << 20

// longPurpose gives ctx the purpose unless it already has one for which others wait without a limit.
func longPurpose(ctx context.Context, purpose string) context.Context {
	if engine.IsLong(engine.Purpose(ctx)) {
		return ctx
	}
	return engine.WithPurpose(ctx, purpose)
}

// Space implements kv.Keeper.
func (h *handle) Space(ctx context.Context) (kv.Space, error) {
	var s kv.Space
	err := h.look(ctx, h.wait, toRead, func(o *opened, t *tx) error {
		m, free, info, err := o.space()
		if err != nil {
			return damaged(o.path, err)
		}
		s.File = info.Size()
		if mapGrows && !o.db.IsReadOnly() {
			s.File = m.size() // its size after this program closes it
		}
		s.Used = (int64(m.pages) - free) * m.pageSize
		s.Free = s.File - s.Used
		s.RewriteDue = free > duePages && free*duePart > int64(m.pages)
		return nil
	})
	return s, err
}

func (o *opened) space() (m meta, free int64, info os.FileInfo, err error) {
	if m, err = readMeta(o.f); err == nil {
		free, err = freePages(o.f, m)
	}
	if err == nil {
		info, err = o.f.Stat()
	}
	return m, free, info, err
}

// Backup implements kv.Keeper. Unless w is an ordinary file, it first copies to a temporary file, since a pipe or a terminal may take any time.
func (h *handle) Backup(ctx context.Context, w io.Writer) error {
	ctx = longPurpose(ctx, "backup")
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return h.copyTo(ctx, f)
		}
	}
	temp, err := h.tempFile()
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	if err := h.copyTo(ctx, temp); err != nil {
		return err
	}
	if _, err := temp.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = io.Copy(&contextWriter{ctx: ctx, w: w}, temp)
	return err
}

// tempFile makes a file beside the store or, if that fails, in the system's folder for temporary files. If the system allows it, the file has no name any
// more, so that no copy can be left behind.
func (h *handle) tempFile() (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(h.file.path), leftover.Name("backup"))
	if err != nil {
		f, err = os.CreateTemp("", leftover.Name("backup"))
	}
	if err == nil && removeOpen {
		err = os.Remove(f.Name())
	}
	return f, err
}

func (h *handle) copyTo(ctx context.Context, w io.Writer) error {
	return h.look(ctx, h.wait, toCopy, func(o *opened, t *tx) (err error) {
		if err := h.check(o, t); err != nil {
			return err
		}
		defer t.caught(&err)
		to := &contextWriter{ctx: ctx, w: w}
		_, err = t.bolt.WriteTo(to)
		return cmp.Or(to.err, err)
	})
}

// contextWriter stops when the context does. It keeps the error, since bbolt only passes on its text.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
	err error
}

func (c *contextWriter) Write(p []byte) (n int, err error) {
	if c.err = c.ctx.Err(); c.err == nil {
		n, c.err = c.w.Write(p)
	}
	return n, c.err
}

// Rewrite implements kv.Keeper. If the machine crashes meanwhile, package leftover removes the unfinished file.
func (h *handle) Rewrite(ctx context.Context, edit func(kv.RwTx) error) error {
	if h.readOnly {
		return kv.ErrReadOnly
	}
	if err := h.door.Enter(ctx); err != nil {
		return err
	}
	defer h.door.Leave()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	ctx = longPurpose(ctx, "vacuum")
	o, err := h.file.lease.enter(newPatience(ctx, h.wait), toReplace)
	if err != nil {
		return err
	}
	defer h.file.lease.leave(true)
	if err := h.file.lease.mayReplace(); err != nil {
		return err
	}
	if err := o.treeEnds(ctx); err != nil {
		return err
	}
	temp := leftover.Path(filepath.Dir(o.path), "rewrite-"+filepath.Base(o.path))
	if err := os.Remove(temp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	defer os.Remove(temp)
	if err := h.rewriteTo(ctx, o, temp, edit); err != nil {
		return err
	}
	if err := o.replaceBy(newPatience(ctx, h.wait), temp); err != nil {
		return fmt.Errorf("the file could not be replaced, and the store stays as it was: %w", err)
	}
	h.file.mu.Lock()
	defer h.file.mu.Unlock()
	h.file.wakeAll()
	return nil
}

// rewriteTo makes the new file. The edit runs in a transaction on the old file that is never committed, and the copy is made from that transaction's view.
// So the new file never holds what the edit deletes.
func (h *handle) rewriteTo(ctx context.Context, o *opened, temp string, edit func(kv.RwTx) error) error {
	tx, err := o.begin(true)
	if err != nil {
		return err
	}
	err = o.within(tx, h.file.sequential, func(t *rwTx, _ *bolt.Tx) error {
		if err := h.check(o, t); err != nil {
			return err
		}
		if edit != nil {
			if err := edit(t); err != nil {
				return err
			}
		}
		fresh, err := makeFile(temp)
		if err != nil {
			return err
		}
		fresh.db.NoSync = true // trim syncs
		err = t.copyTo(ctx, fresh)
		fresh.close()
		if err != nil {
			return err
		}
		return trim(temp)
	})
	if err == nil {
		o.rollback(tx)
	}
	return err
}

// trim cuts the space for growth off a new file and syncs it.
func trim(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err = cut(f); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// cut shortens a file to the pages in use.
func cut(f *os.File) error {
	m, err := readMeta(f)
	if err != nil {
		return err
	}
	return f.Truncate(m.size())
}

// copyTo copies everything that the session sees into an empty file.
func (s *session) copyTo(ctx context.Context, fresh *opened) (err error) {
	defer s.caught(&err)
	c := copier{from: s, to: fresh}
	defer func() {
		if c.tx != nil {
			fresh.rollback(c.tx)
		}
	}()
	roots := s.bolt.Cursor()
	var last []byte
	for name, _ := roots.First(); name != nil; name, _ = roots.Next() {
		if last != nil && bytes.Compare(name, last) <= 0 {
			return s.wrong(errors.New("buckets are out of order"))
		}
		last = name
		if err := c.bucket(ctx, name, s.bolt.Bucket(name)); err != nil {
			return err
		}
	}
	return c.commit()
}

// copier writes a new file in transactions that fit in memory.
type copier struct {
	from *session
	to   *opened
	tx   *bolt.Tx
	into *bolt.Bucket
	size int
}

func (c *copier) bucket(ctx context.Context, name []byte, from *bolt.Bucket) error {
	if from == nil {
		return nil
	}
	if err := c.begin(name); err != nil {
		return err
	}
	all := scan{session: c.from, bucket: from} // it also ends if pages lead back to an earlier one
	key, value, err := all.first()
	for ; key != nil && err == nil; key, value, err = all.next() {
		if value == nil {
			continue // boltkv makes no buckets within buckets
		}
		if err := c.into.Put(key, value); err != nil {
			return damaged(c.from.file.path, err) // it was written here once, so it is damage
		}
		if c.size += len(key) + len(value); c.size < copyBatch {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.commit(); err != nil {
			return err
		}
		if err := c.begin(name); err != nil {
			return err
		}
	}
	return errors.Join(err, ctx.Err())
}

// begin makes a bucket the one that is written to. It begins a transaction if there is none.
func (c *copier) begin(name []byte) (err error) {
	if c.tx == nil {
		if c.tx, err = c.to.begin(true); err != nil {
			return err
		}
	}
	if c.into, err = c.tx.CreateBucketIfNotExists(name); err != nil {
		return err
	}
	c.into.FillPercent = 1
	if slices.Contains(c.from.sequential, string(name)) {
		err = addTail(c.into)
	}
	return err
}

func (c *copier) commit() error {
	tx := c.tx
	c.tx, c.size = nil, 0
	if tx == nil {
		return nil
	}
	return c.to.commit(tx)
}

// replaceBy puts another file in the place of this one, with this one's permissions and owner.
func (o *opened) replaceBy(p *patience, temp string) error {
	if err := os.Chmod(temp, o.info.Mode().Perm()); err != nil {
		return err
	}
	sameOwner(temp, o.info)
	if !removeOpen {
		o.close()
	}
	if err := rename(p, temp, o.path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(o.path))
}
