package boltkv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// The part of bbolt's file format that is needed to look at a file without opening it: a page begins with its id (8 bytes), flags (2), count (2) and
// overflow (4). Pages 0 and 1 each hold a meta record; the valid one with the higher transaction counts. Numbers are in the machine's byte order.
const (
	pageSize   = 16384
	boltMagic  = 0xED0CDAED
	pageHead   = 16
	metaLength = 64
	noFreelist = ^uint64(0)
)

var order = binary.NativeEndian

// meta is bbolt's root record.
type meta struct {
	pageSize int64
	root     uint64 // page of the root bucket
	freelist uint64 // page of the list of free pages
	pages    uint64 // one more than the highest page in use
	tx       uint64 // the transaction that wrote it
}

func (m meta) size() int64 { return int64(m.pages) * m.pageSize }

// errNoMeta: the file may be bbolt's, but has no valid meta record.
var errNoMeta = errors.New("both records at its beginning are damaged")

// readMeta reads the meta record that counts. A record that is being written is not valid; then the other one counts.
func readMeta(r io.ReaderAt) (meta, error) {
	m, err := metaAt(r, 0)
	size := m.pageSize
	if err != nil {
		size = pageSize
	}
	other, otherErr := metaAt(r, size)
	if otherErr == nil && (err != nil || other.tx > m.tx) {
		return other, nil
	}
	return m, err
}

// doubtful reports whether the record beside m, the one that counts, is damaged and may have been newer.
func doubtful(r io.ReaderAt, m meta) bool {
	for _, offset := range []int64{0, m.pageSize} {
		if _, err := metaAt(r, offset); err == nil {
			continue
		}
		var tx [8]byte // of a record that is damaged elsewhere
		_, err := r.ReadAt(tx[:], offset+pageHead+48)
		return err != nil || order.Uint64(tx[:])+1 != m.tx
	}
	return false
}

func metaAt(r io.ReaderAt, offset int64) (meta, error) {
	var page [pageHead + metaLength]byte
	if n, err := r.ReadAt(page[:], offset); n < len(page) {
		if err == io.EOF {
			err = errNoMeta
		}
		return meta{}, err
	}
	b := page[pageHead:]
	sum := fnv.New64a()
	sum.Write(b[:metaLength-8])
	if order.Uint32(b) != boltMagic || order.Uint64(b[metaLength-8:]) != sum.Sum64() {
		return meta{}, errNoMeta
	}
	m := meta{
		pageSize: int64(order.Uint32(b[8:])),
		root:     order.Uint64(b[16:]),
		freelist: order.Uint64(b[32:]),
		pages:    order.Uint64(b[40:]),
		tx:       order.Uint64(b[48:]),
	}
	if m.pageSize < 512 || m.pageSize > 1<<20 || m.pages > 1<<40 {
		return meta{}, errNoMeta
	}
	return m, nil
}

// freePages reads how many pages are in the list of free pages.
func freePages(r io.ReaderAt, m meta) (int64, error) {
	if m.freelist == noFreelist {
		return 0, nil
	}
	var head [pageHead + 8]byte
	if _, err := r.ReadAt(head[:], int64(m.freelist)*m.pageSize); err != nil {
		return 0, err
	}
	if n := order.Uint16(head[10:]); n < 0xFFFF {
		return int64(n), nil
	}
	return int64(order.Uint64(head[pageHead:])), nil
}

// looksOurs refuses a file that is not bbolt's.
func looksOurs(f *os.File) error {
	// One of the two records may be damaged.
	for _, offset := range []int64{0, pageSize} {
		var magic [4]byte
		_, err := f.ReadAt(magic[:], offset+pageHead)
		if held(err) {
			return errBusy
		}
		if err == nil && order.Uint32(magic[:]) == boltMagic {
			return nil
		}
	}
	return fmt.Errorf("%w: %s is a file of another kind", kv.ErrNotOurs, f.Name())
}
