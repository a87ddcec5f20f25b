// Package sqlite reads the tables of SQLite database files: row by row, or one row by its id. It knows only the file format: it runs no SQL, writes nothing,
// takes no lock, and ignores views, triggers and indexes.
//
// It reads a write-ahead log beside the file too, up to the last complete transaction. It refuses a database with a rollback journal with ErrJournal, since its
// pages may belong to two states.
package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Magic is the first 16 bytes of each database file.
const Magic = "SQLite format 3\x00"

// Errors to test for.
var (
	ErrDamaged = errors.New("a damaged SQLite database")
	ErrJournal = errors.New("the SQLite database is in the middle of a change: let the program that uses it end, or open it once with that program")
)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// DB is an open database. Only one goroutine may use it at a time.
type DB struct {
	file, log *os.File
	began     state
	size      int              // of a page, in bytes
	usable    int              // bytes of a page that hold data
	pages     uint32           // number of pages
	encoding  uint32           // of texts: 1 is UTF-8, 2 and 3 are UTF-16
	logged    map[uint32]int64 // offset in the log of the newest version of a page
	tables    []*Table
	inner     map[uint32][]byte // inner pages of trees that were read recently
}

// Open opens a database for reading. It returns ErrDamaged for a file that is not a whole SQLite database, and ErrJournal for one in the middle of a change.
func Open(path string) (*DB, error) {
	db := &DB{logged: map[uint32]int64{}, inner: map[uint32][]byte{}}
	if err := db.open(path); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

func (db *DB) open(path string) (err error) {
	if journal(path + "-journal") {
		return ErrJournal
	}
	if db.file, err = os.Open(path); err != nil {
		return err
	}
	head := make([]byte, 100)
	if _, err := io.ReadFull(db.file, head); err != nil {
		return damaged("it is shorter than its header")
	}
	if err := db.header(head); err != nil {
		return err
	}
	if db.log, err = os.Open(path + "-wal"); err == nil {
		if err := db.readLog(); err != nil {
			return err
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	db.began = db.state()
	return db.schema()
}

// journal reports whether there is a rollback journal to play back. One that begins with zero bytes is spent.
func journal(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	b := make([]byte, 1)
	n, _ := f.Read(b)
	return n == 1 && b[0] != 0
}

func (db *DB) header(b []byte) error {
	if string(b[:16]) != Magic {
		return damaged("it does not begin as one")
	}
	db.size = int(binary.BigEndian.Uint16(b[16:]))
	if db.size == 1 {
		db.size = 65536
	}
	db.usable = db.size - int(b[20])
	if db.size < 512 || db.size&(db.size-1) != 0 || db.usable < 480 {
		return damaged("pages of %d bytes", db.size)
	}
	if b[19] > 2 {
		return fmt.Errorf("an SQLite database of version %d, which is newer than this program", b[19])
	}
	db.encoding = binary.BigEndian.Uint32(b[56:])
	if db.encoding > 3 {
		return damaged("texts of encoding %d", db.encoding)
	}
	info, err := db.file.Stat()
	if err != nil {
		return err
	}
	db.pages = uint32(min(info.Size()/int64(db.size), 1<<32-2))
	return nil
}

// Close closes the files. It always returns nil.
func (db *DB) Close() error {
	for _, f := range []*os.File{db.file, db.log} {
		if f != nil {
			f.Close()
		}
	}
	return nil
}

// state is what changes when a program writes to the database: sizes and times of the file and its log.
type state struct {
	size, logSize int64
	time, logTime time.Time
}

func (db *DB) state() state {
	var s state
	if i, err := db.file.Stat(); err == nil {
		s.size, s.time = i.Size(), i.ModTime()
	}
	if db.log != nil {
		if i, err := db.log.Stat(); err == nil {
			s.logSize, s.logTime = i.Size(), i.ModTime()
		}
	}
	return s
}

// Changed reports whether a program has written to the file, or to the log that Open found, since Open. What was read may then belong to two states. A log that
// was created later does not count: the pages that were read stay as they are until the file changes.
func (db *DB) Changed() bool { return db.state() != db.began }

// Logged reports whether part of the database is in its log and not in the file itself.
func (db *DB) Logged() bool { return len(db.logged) > 0 }

// page reads page n: from the log if it has the page, otherwise from the file.
func (db *DB) page(n uint32) ([]byte, error) {
	if n == 0 || n > db.pages {
		return nil, damaged("it names page %d of %d", n, db.pages)
	}
	b := make([]byte, db.size)
	var err error
	if at, ok := db.logged[n]; ok {
		_, err = db.log.ReadAt(b, at)
	} else {
		_, err = db.file.ReadAt(b, int64(n-1)*int64(db.size))
	}
	if err == io.EOF {
		return nil, damaged("page %d is cut off", n)
	}
	return b, err
}
