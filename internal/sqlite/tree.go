package sqlite

import "encoding/binary"

// A table's rows are in the leaves of a tree, in the order of their ids. A table without row ids is a tree like an index, whose inner pages hold entries too.

const (
	innerIndex = 2
	innerTable = 5
	leafIndex  = 10
	leafTable  = 13
	maxDepth   = 64
)

var errCircle = damaged("its pages go in a circle")

// node is a page of a tree.
type node struct {
	b     []byte // the page's bytes
	kind  byte
	at    int // offset of its header
	cells int
}

func (db *DB) node(n uint32) (node, error) {
	b, known := db.inner[n]
	if !known {
		var err error
		if b, err = db.page(n); err != nil {
			return node{}, err
		}
	}
	x := node{b: b}
	if n == 1 {
		x.at = 100
	}
	x.kind, x.cells = b[x.at], int(binary.BigEndian.Uint16(b[x.at+3:]))
	switch x.kind {
	case innerIndex, innerTable, leafIndex, leafTable:
	default:
		return node{}, damaged("page %d is of no tree", n)
	}
	if x.pointers()+2*x.cells > len(b) {
		return node{}, damaged("page %d has %d cells", n, x.cells)
	}
	if x.inner() && !known {
		if len(db.inner) >= 512 {
			clear(db.inner)
		}
		db.inner[n] = b
	}
	return x, nil
}

func (x *node) inner() bool { return x.kind == innerIndex || x.kind == innerTable }

func (x *node) pointers() int {
	if x.inner() {
		return x.at + 12
	}
	return x.at + 8
}

// cell returns the rest of the page from cell i on.
func (x *node) cell(i int) []byte {
	at := int(binary.BigEndian.Uint16(x.b[x.pointers()+2*i:]))
	return x.b[min(at, len(x.b)):]
}

// child returns the page to the left of cell i. The page after the last cell is in the header.
func (x *node) child(i int) (uint32, error) {
	if i == x.cells {
		return binary.BigEndian.Uint32(x.b[x.at+8:]), nil
	}
	c := x.cell(i)
	if len(c) < 4 {
		return 0, damaged("a cell is cut off")
	}
	return binary.BigEndian.Uint32(c), nil
}

// walk visits the entries below a page in their order, and reports whether to go on. budget is the number of pages that may still be read, including those into
// which records overflow. Each page belongs in one place, so the budget ends circles of links and pages that many records claim.
func (db *DB) walk(page uint32, depth int, budget *int64, visit func(id int64, record []byte) (bool, error)) (bool, error) {
	if *budget--; *budget < 0 || depth > maxDepth {
		return false, errCircle
	}
	x, err := db.node(page)
	if err != nil {
		return false, err
	}
	for i := range x.cells {
		if x.inner() {
			child, err := x.child(i)
			if err != nil {
				return false, err
			}
			if more, err := db.walk(child, depth+1, budget, visit); !more || err != nil {
				return false, err
			}
		}
		if x.kind == innerTable {
			continue
		}
		id, record, err := db.entry(&x, i, budget)
		if err != nil {
			return false, err
		}
		if more, err := visit(id, record); !more || err != nil {
			return false, err
		}
	}
	if !x.inner() {
		return true, nil
	}
	last, _ := x.child(x.cells)
	return db.walk(last, depth+1, budget, visit)
}

// find returns the record of the row of an id, nil for none.
func (db *DB) find(page uint32, id int64) ([]byte, error) {
	for range maxDepth {
		x, err := db.node(page)
		if err != nil {
			return nil, err
		}
		i, err := x.search(id)
		if err != nil {
			return nil, err
		}
		if x.kind == innerTable {
			if page, err = x.child(i); err != nil {
				return nil, err
			}
			continue
		}
		if i == x.cells || x.kind != leafTable {
			return nil, nil
		}
		budget := int64(db.pages)
		have, record, err := db.entry(&x, i, &budget)
		if err != nil || have != id {
			return nil, err
		}
		return record, nil
	}
	return nil, errCircle
}

// search returns the first cell whose id is not below id.
func (x *node) search(id int64) (int, error) {
	low, high := 0, x.cells
	for low < high {
		mid := (low + high) / 2
		c := x.cell(mid)
		skip := 4 // the left child's page number
		if x.kind == leafTable {
			_, skip = varint(c)
		}
		have, n := varint(c[min(skip, len(c)):])
		if n == 0 {
			return 0, damaged("a cell is cut off")
		}
		if int64(have) < id {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, nil
}

// entry reads the record of cell i, with the pages into which it overflows. id is 0 in a table without row ids.
func (db *DB) entry(x *node, i int, budget *int64) (id int64, record []byte, err error) {
	c := x.cell(i)
	if x.kind == innerIndex {
		c = c[min(4, len(c)):]
	}
	size, n := varint(c)
	if n == 0 {
		return 0, nil, damaged("a cell is cut off")
	}
	c = c[n:]
	if x.kind == leafTable {
		u, n := varint(c)
		if n == 0 {
			return 0, nil, damaged("a cell is cut off")
		}
		id, c = int64(u), c[n:]
	}
	if size > uint64(db.pages)*uint64(db.size) || size > 1<<31 {
		return 0, nil, damaged("a record of %d bytes", size)
	}
	record, err = db.payload(c, int(size), x.kind == leafTable, budget)
	return id, record, err
}

// payload returns a record of size bytes: the part in its cell, and the parts on further pages.
func (db *DB) payload(c []byte, size int, table bool, budget *int64) ([]byte, error) {
	here := db.local(size, table)
	if len(c) < here {
		return nil, damaged("a record is cut off")
	}
	if here == size {
		return c[:size:size], nil
	}
	if len(c) < here+4 {
		return nil, damaged("a record is cut off")
	}
	out := append(make([]byte, 0, min(size, 1<<20)), c[:here]...)
	for next := binary.BigEndian.Uint32(c[here:]); len(out) < size; {
		if *budget--; *budget < 0 {
			return nil, errCircle
		}
		b, err := db.page(next)
		if err != nil {
			return nil, err
		}
		next = binary.BigEndian.Uint32(b)
		out = append(out, b[4:min(db.usable, 4+size-len(out))]...)
	}
	return out, nil
}

// local returns how many bytes of a record are in its cell.
func (db *DB) local(size int, table bool) int {
	most, least := (db.usable-12)*64/255-23, (db.usable-12)*32/255-23
	if table {
		most = db.usable - 35
	}
	if size <= most {
		return size
	}
	if n := least + (size-least)%(db.usable-4); n <= most {
		return n
	}
	return least
}

// varint decodes a number of one to nine bytes; n is their count, 0 if the number is cut off.
func varint(b []byte) (v uint64, n int) {
	for i := range min(len(b), 9) {
		if i == 8 {
			return v<<8 | uint64(b[i]), 9
		}
		v = v<<7 | uint64(b[i]&0x7f)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}
