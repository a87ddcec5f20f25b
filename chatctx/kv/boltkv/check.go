package boltkv

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// CheckPages implements kv.Keeper. It reads the pages itself, since bbolt's own check follows every number through the memory map and crashes the program
// if one leads out of the file.
func (h *handle) CheckPages(ctx context.Context, problem func(text string)) error {
	ctx = longPurpose(ctx, "check")
	return h.look(ctx, h.wait, toCopy, func(o *opened, t *tx) error {
		m, err := readMeta(o.f)
		if err != nil {
			return damaged(o.path, err)
		}
		c := checker{ctx: ctx, r: o.f, m: m, problem: problem, use: make(map[uint64]use), deep: true}
		for page, offset := range []int64{0, m.pageSize} {
			if _, err := metaAt(o.f, offset); err != nil {
				c.fault(uint64(page), "has a damaged record; the other one counts, and the last change may be lost")
			}
		}
		return cmp.Or(c.run(), c.ends(o.path))
	})
}

// ends returns an error if the pages lead in a circle. bbolt would follow it for ever, with a growing stack.
func (c *checker) ends(path string) error {
	if c.circle {
		return damaged(path, "its pages lead in a circle")
	}
	return nil
}

// treeEnds checks for such circles before the whole tree is read.
func (o *opened) treeEnds(ctx context.Context) error {
	m, err := readMeta(o.f)
	if err != nil {
		return damaged(o.path, err)
	}
	c := checker{ctx: ctx, r: o.f, m: m, problem: func(string) {}, use: make(map[uint64]use), deep: true}
	c.tree(m.root, nil, nil)
	return cmp.Or(ctx.Err(), c.ends(o.path))
}

// sound checks what bbolt follows before a panic can be caught: the root bucket, whose small buckets it copies into Go's memory, where a wrong offset
// crashes the program, and the list of free pages, by which it writes.
func sound(r io.ReaderAt, m meta, write bool) error {
	var err error
	c := checker{ctx: context.Background(), r: r, m: m, use: make(map[uint64]use), problem: func(text string) {
		if err == nil {
			err = errors.New(text)
		}
	}}
	c.tree(m.root, nil, nil)
	if write && err == nil {
		c.freeIDs(func(uint64) {})
	}
	return err
}

// A page of bbolt's tree has elements of 16 bytes after its head: in a branch the offset and size of the key (4 bytes each)
// and the page below (8), in a leaf flags, offset, sizes of key and value (4 each). Offsets count from the element.
const (
	branchPage   = 1
	leafPage     = 2
	freePage     = 16
	elementSize  = 16
	bucketFlag   = 1
	bucketLength = 16 // root page and sequence of a bucket, as a leaf's value
)

type use uint8

const (
	unknown use = iota
	inTree
	inFreelist
)

// checker walks through all pages once.
type checker struct {
	ctx     context.Context
	r       io.ReaderAt
	m       meta
	problem func(string)
	use     map[uint64]use
	deep    bool // also walk into the buckets
	path    []uint64
	circle  bool // a page leads to one above it
}

func (c *checker) run() error {
	c.freelist()
	c.tree(c.m.root, nil, nil)
	if err := c.ctx.Err(); err != nil {
		return err
	}
	c.lost()
	return nil
}

func (c *checker) fault(id uint64, format string, args ...any) {
	c.problem(fmt.Sprintf("page %d ", id) + fmt.Sprintf(format, args...))
}

// page reads a page with its overflow and marks all of it, or reports why it cannot.
func (c *checker) page(id uint64, as use) (data []byte, ok bool) {
	head := make([]byte, pageHead)
	if id < 2 || id >= c.m.pages {
		c.fault(id, "is not one of the file's %d", c.m.pages)
		return nil, false
	}
	if _, err := c.r.ReadAt(head, int64(id)*c.m.pageSize); err != nil {
		c.fault(id, "cannot be read: %v", err)
		return nil, false
	}
	overflow := uint64(order.Uint32(head[12:]))
	if order.Uint64(head) != id || id+overflow >= c.m.pages {
		c.fault(id, "has a damaged head")
		return nil, false
	}
	for i := id; i <= id+overflow; i++ {
		if c.use[i] != unknown {
			c.fault(i, "is used twice")
			return nil, false
		}
		c.use[i] = as
	}
	data = make([]byte, int64(overflow+1)*c.m.pageSize)
	if _, err := c.r.ReadAt(data, int64(id)*c.m.pageSize); err != nil {
		c.fault(id, "cannot be read: %v", err)
		return nil, false
	}
	return data, true
}

func (c *checker) freelist() {
	c.freeIDs(func(id uint64) {
		if c.use[id] != unknown {
			c.fault(id, "is both free and used")
		}
		c.use[id] = inFreelist
	})
}

// freeIDs calls fn for each free page, in order.
func (c *checker) freeIDs(fn func(id uint64)) {
	if c.m.freelist == noFreelist {
		return
	}
	data, ok := c.page(c.m.freelist, inTree)
	if !ok {
		return
	}
	if order.Uint16(data[8:]) != freePage {
		c.fault(c.m.freelist, "is not a list of free pages")
		return
	}
	ids := data[pageHead:]
	n := uint64(order.Uint16(data[10:]))
	if n == 0xFFFF {
		n, ids = order.Uint64(ids), ids[8:]
	}
	if n > uint64(len(ids)/8) {
		c.fault(c.m.freelist, "names more free pages than it has room for")
		return
	}
	last := uint64(1)
	for i := range n {
		id := order.Uint64(ids[8*i:])
		if id <= last || id >= c.m.pages {
			c.fault(c.m.freelist, "names page %d as free after page %d of %d", id, last, c.m.pages)
			return
		}
		last = id
		fn(id)
	}
}

// tree walks through a page and all pages below it. Their keys must lie from low (inclusive) to high (exclusive); nil means no bound.
func (c *checker) tree(id uint64, low, high []byte) {
	if c.ctx.Err() != nil {
		return
	}
	c.circle = c.circle || slices.Contains(c.path, id)
	data, ok := c.page(id, inTree)
	if !ok {
		return
	}
	c.path = append(c.path, id)
	defer func() { c.path = c.path[:len(c.path)-1] }()
	switch order.Uint16(data[8:]) {
	case branchPage:
		c.branch(id, data, low, high)
	case leafPage:
		c.leaf(id, data, low, high)
	default:
		c.fault(id, "is neither a branch nor a leaf")
	}
}

func (c *checker) branch(id uint64, data, low, high []byte) {
	var keys [][]byte
	var below []uint64
	for i := range int(order.Uint16(data[10:])) {
		e, ok := element(data, i)
		if !ok {
			c.fault(id, "has elements that do not fit")
			return
		}
		key, ok := part(data, i, order.Uint32(e), order.Uint32(e[4:]))
		if !ok {
			c.fault(id, "has key %d outside of the page", i)
			return
		}
		keys, below = append(keys, key), append(below, order.Uint64(e[8:]))
	}
	if len(keys) == 0 {
		c.fault(id, "is a branch without keys")
	}
	c.ordered(id, keys, nil, high) // the first key may be below low: bbolt keeps it when smaller keys are deleted
	for i, page := range below {
		from, to := low, high
		if i > 0 {
			from = keys[i]
		}
		if i+1 < len(keys) {
			to = keys[i+1]
		}
		c.tree(page, from, to)
	}
}

func (c *checker) leaf(id uint64, data, low, high []byte) {
	var keys [][]byte
	for i := range int(order.Uint16(data[10:])) {
		e, ok := element(data, i)
		if !ok {
			c.fault(id, "has elements that do not fit")
			return
		}
		offset, keySize, valueSize := order.Uint32(e[4:]), order.Uint32(e[8:]), order.Uint32(e[12:])
		key, ok := part(data, i, offset, keySize)
		value, ok2 := part(data, i, offset+keySize, valueSize)
		if !ok || !ok2 || offset+keySize < offset {
			c.fault(id, "has key %d outside of the page", i)
			return
		}
		keys = append(keys, key)
		if order.Uint32(e)&bucketFlag != 0 {
			c.bucket(id, key, value)
		}
	}
	c.ordered(id, keys, low, high)
}

// bucket walks through a bucket. A small bucket has no page of its own: it lies in the value, behind the bucket's head, as a leaf without an id.
func (c *checker) bucket(id uint64, name, value []byte) {
	if len(value) < bucketLength {
		c.fault(id, "has the bucket %q cut short", name)
		return
	}
	if root := order.Uint64(value); root != 0 {
		if c.deep {
			c.tree(root, nil, nil)
		}
		return
	}
	inline := value[bucketLength:]
	if len(inline) < pageHead || order.Uint16(inline[8:]) != leafPage {
		c.fault(id, "has the damaged bucket %q", name)
		return
	}
	c.leaf(id, inline, nil, nil)
}

func (c *checker) ordered(id uint64, keys [][]byte, low, high []byte) {
	for i, key := range keys {
		if i > 0 && bytes.Compare(keys[i-1], key) >= 0 || i == 0 && bytes.Compare(key, low) < 0 ||
			high != nil && bytes.Compare(key, high) >= 0 {
			c.fault(id, "has key %d out of order", i)
			return
		}
	}
}

// lost reports the pages that are neither used nor free.
func (c *checker) lost() {
	for id := uint64(2); id < c.m.pages; id++ {
		from := id
		for id < c.m.pages && c.use[id] == unknown {
			id++
		}
		if id > from {
			c.fault(from, "is the first of %d in a row that are neither used nor free", id-from)
		}
	}
}

// element returns the head of element i of a page.
func element(page []byte, i int) ([]byte, bool) {
	at := pageHead + i*elementSize
	if at+elementSize > len(page) {
		return nil, false
	}
	return page[at : at+elementSize], true
}

// part returns the bytes at an offset from element i.
func part(page []byte, i int, offset, size uint32) ([]byte, bool) {
	from := uint64(pageHead+i*elementSize) + uint64(offset)
	to := from + uint64(size)
	if to > uint64(len(page)) {
		return nil, false
	}
	return page[from:to], true
}
