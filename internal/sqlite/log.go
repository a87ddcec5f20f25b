package sqlite

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
)

// The write-ahead log: a header, then frames of one page each. A frame is valid when its salts equal the header's and its checksum, which continues that of the
// frame before it, is right. Frames count up to the last valid one that ends a transaction.

const (
	logHead   = 32
	frameHead = 24
	logMagic  = 0x377f0682 // the last bit gives the byte order of the checksums
)

// readLog finds the newest version of each page in the log. A log that is empty, or does not begin with a valid header for this database, holds nothing.
func (db *DB) readLog() error {
	r := bufio.NewReaderSize(db.log, 1<<16)
	head := make([]byte, logHead)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch magic := binary.BigEndian.Uint32(head); {
	case magic&^1 != logMagic:
		return nil
	case magic&1 == 1:
		order = binary.BigEndian
	}
	sum := checksum{order: order}
	sum.add(head[:24])
	if !sum.is(head[24:]) || int(binary.BigEndian.Uint32(head[8:])) != db.size {
		return nil
	}
	pending := map[uint32]int64{}
	frame := make([]byte, frameHead+db.size)
	for at := int64(logHead); ; at += int64(len(frame)) {
		if _, err := io.ReadFull(r, frame); err != nil {
			return db.first()
		}
		sum.add(frame[:8])
		sum.add(frame[frameHead:])
		if !bytes.Equal(frame[8:16], head[16:24]) || !sum.is(frame[16:]) {
			return db.first()
		}
		pending[binary.BigEndian.Uint32(frame)] = at + frameHead
		if pages := binary.BigEndian.Uint32(frame[4:]); pages != 0 {
			for n, where := range pending {
				db.logged[n] = where
			}
			clear(pending)
			db.pages = pages
		}
	}
}

// first reads the database's header again when the log has a newer first page.
func (db *DB) first() error {
	if _, ok := db.logged[1]; !ok {
		return nil
	}
	pages := db.pages
	b, err := db.page(1)
	if err != nil {
		return err
	}
	size := db.size
	if err := db.header(b); err != nil {
		return err
	}
	if db.size != size {
		return damaged("its log has pages of another size")
	}
	db.pages = pages
	return nil
}

// checksum is the running checksum of a log, which continues from frame to frame.
type checksum struct {
	order  binary.ByteOrder
	s0, s1 uint32
}

func (c *checksum) add(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		c.s0 += c.order.Uint32(b) + c.s1
		c.s1 += c.order.Uint32(b[4:]) + c.s0
	}
}

func (c *checksum) is(b []byte) bool {
	return binary.BigEndian.Uint32(b) == c.s0 && binary.BigEndian.Uint32(b[4:]) == c.s1
}
