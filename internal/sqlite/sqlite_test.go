package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// copyOf returns a copy of a database of testdata, which internal/sqlitecheck made from the SQL beside it and compares with what SQLite reads.
func copyOf(t testing.TB, name string) (path string, whole []byte) {
	t.Helper()
	whole, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), name)
	write(t, path, whole)
	return path, whole
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, path string) *DB {
	t.Helper()
	db, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// TestTables reads UTF-16, records over several pages, whole numbers of a REAL column, a column that was added later, and a table without row ids.
func TestTables(t *testing.T) {
	path, _ := copyOf(t, "tables.db")
	db := open(t, path)
	if len(db.Tables()) != 2 {
		t.Fatalf("%d tables", len(db.Tables()))
	}
	many := db.Table("MANY")
	if got := strings.Join(many.Columns, " "); got != "id text size bytes later" || many.Keyed() || db.Table("v") != nil {
		t.Errorf("columns %q", got)
	}
	for id, want := range map[int64]string{
		9:         `[9 "número 3" 1 [0 0 0] "before it was there"]`,
		-7:        `[-7 "" 1e+300 [0 255] "before it was there"]`,
		2000:      `[2000 <nil> <nil> <nil> "now"]`,
		1<<63 - 1: `[9223372036854775807 <nil> <nil> <nil> <nil>]`,
	} {
		row, found, err := many.Row(id)
		if got := shown(row); got != want || !found || err != nil {
			t.Errorf("row %d: %s, %t, %v; want %s", id, got, found, err, want)
		}
	}
	if row, _, err := many.Row(1000); err != nil || row.Values[1] != strings.Repeat("long ", 700) || row.Values[2] != -1.5 {
		t.Errorf("the long row: %v", err)
	}
	if row, found, err := many.Row(10); found || err != nil {
		t.Errorf("a row that is not there: %v, %v", row, err)
	}
	var keyed []string
	for row, err := range db.Table("key ed").Rows() {
		if err != nil {
			t.Fatal(err)
		}
		keyed = append(keyed, shown(row))
	}
	if got := strings.Join(keyed, " "); got != `["a third" 1 <nil>] ["one" 1 "a"] ["two" 2 "b"]` {
		t.Errorf("read %s", got)
	}
	n, last := 0, int64(-1<<63)
	for row, err := range many.Rows() {
		if err != nil || row.ID <= last {
			t.Fatal(row.ID, last, err)
		}
		n, last = n+1, row.ID
	}
	if n != 104 {
		t.Errorf("%d rows", n)
	}
}

func shown(row Row) string {
	var list []string
	for _, v := range row.Values {
		if s, ok := v.(string); ok {
			v = fmt.Sprintf("%q", s)
		}
		list = append(list, fmt.Sprint(v))
	}
	return "[" + strings.Join(list, " ") + "]"
}

// logOf returns a write-ahead log of versions of page 2, each of which ends a transaction if commit says so.
func logOf(pages [][]byte, commit []bool) []byte {
	sum := checksum{order: binary.BigEndian}
	out := make([]byte, 0, 2048)
	out = binary.BigEndian.AppendUint32(out, logMagic|1)
	for _, v := range []uint32{3007000, uint32(len(pages[0])), 0, 11, 12} {
		out = binary.BigEndian.AppendUint32(out, v)
	}
	seal := func(b []byte) []byte {
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, sum.s0), sum.s1)
	}
	sum.add(out)
	out = seal(out)
	for i, p := range pages {
		frame := binary.BigEndian.AppendUint32(nil, 2)
		frame = binary.BigEndian.AppendUint32(frame, map[bool]uint32{true: 2}[commit[i]])
		sum.add(frame)
		sum.add(p)
		frame = binary.BigEndian.AppendUint64(frame, 11<<32|12)
		out = append(append(out, seal(frame)...), p...)
	}
	return out
}

func songs(t *testing.T, path string) string {
	t.Helper()
	var list []string
	for row, err := range open(t, path).Table("songs").Rows() {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, row.Values[1].(string))
	}
	return strings.Join(list, ", ")
}

// TestLog reads pages from a log up to its last complete transaction, and not further. internal/sqlitecheck tests whether the frames are as SQLite writes them.
func TestLog(t *testing.T) {
	path, whole := copyOf(t, "logged.db")
	page := func(text string) []byte {
		return bytes.Replace(whole[512:], []byte("in the file"), []byte(text), 1)
	}
	three := [][]byte{page("in the log1"), page("in the log2"), page("in the log3")}
	for name, c := range map[string]struct {
		log  []byte
		want string
	}{
		"none":              {nil, "in the file"},
		"not a log":         {[]byte(strings.Repeat("no log ", 500)), "in the file"},
		"three changes":     {logOf(three, []bool{true, true, true}), "in the log3"},
		"the last not done": {logOf(three, []bool{true, true, false}), "in the log2"},
		"none done":         {logOf(three, []bool{false, false, false}), "in the file"},
		"cut off":           {logOf(three, []bool{true, true, true})[:logHead+2*(frameHead+512)+100], "in the log2"},
		"a byte turned":     {turned(logOf(three, []bool{true, true, true}), logHead+2*frameHead+512+20), "in the log1"},
		"other salts":       {turned(logOf(three, []bool{true, true, true}), logHead+9), "in the file"},
	} {
		write(t, path+"-wal", c.log)
		if got := songs(t, path); got != c.want {
			t.Errorf("%s: read %q, want %q", name, got, c.want)
		}
	}
}

func turned(b []byte, at int) []byte {
	b[at] ^= 1
	return b
}

// TestRefuses opens files that are not databases, or must not be read in their state.
func TestRefuses(t *testing.T) {
	path, whole := copyOf(t, "tables.db")
	for name, b := range map[string][]byte{
		"empty":       {},
		"a text":      []byte(strings.Repeat("no database ", 100)),
		"the header":  whole[:100],
		"odd pages":   append(append(bytes.Clone(whole[:16]), 3, 1), whole[18:]...),
		"no room":     append(append(bytes.Clone(whole[:20]), 200), whole[21:]...),
		"one page":    whole[:512],
		"schema gone": append(bytes.Clone(whole[:100]), make([]byte, len(whole)-100)...),
		"an encoding": append(append(bytes.Clone(whole[:59]), 9), whole[60:]...),
	} {
		write(t, path, b)
		if db, err := Open(path); !errors.Is(err, ErrDamaged) && !(name == "one page" && err == nil) {
			t.Errorf("%s: opened %v, %v", name, db, err)
		}
	}
	write(t, path, whole)
	write(t, path+"-journal", []byte("\xd9\xd5\x05\xf9 \xa1c\xd7"))
	if _, err := Open(path); !errors.Is(err, ErrJournal) {
		t.Errorf("beside a journal: %v", err)
	}
	write(t, path+"-journal", make([]byte, 512)) // a spent one
	if _, err := Open(path); err != nil {
		t.Error(err)
	}
	if _, err := Open(path + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestChanged reports that somebody wrote to the database or its log after it was opened.
func TestChanged(t *testing.T) {
	path, whole := copyOf(t, "logged.db")
	write(t, path+"-wal", nil)
	db := open(t, path)
	if db.Changed() || db.Logged() {
		t.Error("changed before anybody wrote")
	}
	write(t, path+"-wal", logOf([][]byte{whole[512:]}, []bool{true}))
	if !db.Changed() {
		t.Error("a log that grew is no change")
	}
}

// readAll reads everything, to see that it neither panics nor runs for ever.
func readAll(path string) (rows int) {
	db, err := Open(path)
	if err != nil {
		return 0
	}
	defer db.Close()
	for _, table := range db.Tables() {
		for row, err := range table.Rows() {
			if err != nil {
				break
			}
			rows++
			table.Row(row.ID)
		}
	}
	return rows
}

// TestDamage changes a database at random 5,000 times: a few bytes, mostly those that describe the layout of pages and records.
func TestDamage(t *testing.T) {
	path, whole := copyOf(t, "tables.db")
	rnd := rand.New(rand.NewPCG(3, 4))
	read := 0
	for range 5_000 {
		b := bytes.Clone(whole)
		for range 1 + rnd.IntN(4) {
			page := rnd.IntN(len(b)/512) * 512
			b[page+rnd.IntN([]int{12, 60, 512}[rnd.IntN(3)])] = byte(rnd.Uint32())
		}
		write(t, path, b)
		read += readAll(path)
	}
	if read < 10_000 {
		t.Errorf("only %d rows were read", read)
	}
}

// TestCircle reads pages that lead to each other, and a chain of pages that many records claim: both have to end.
func TestCircle(t *testing.T) {
	path, whole := copyOf(t, "tables.db")
	db := open(t, path)
	root := int(db.Table("many").root-1) * 512
	if whole[root] != innerTable {
		t.Fatal("the table has one page")
	}
	b := bytes.Clone(whole)
	binary.BigEndian.PutUint32(b[root+8:], db.Table("many").root)
	write(t, path, b)
	var err error
	for _, e := range open(t, path).Table("many").Rows() {
		err = e
	}
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("a page that leads to itself: %v", err)
	}
	if _, _, err := open(t, path).Table("many").Row(1 << 60); !errors.Is(err, ErrDamaged) {
		t.Errorf("looked up in a circle: %v", err)
	}
}

// TestDeclarations parses CREATE TABLE as people write it.
func TestDeclarations(t *testing.T) {
	for sql, want := range map[string]string{
		`CREATE TABLE t (a INTEGER PRIMARY KEY, b)`:                                                       "a b id=0 [0 1]",
		`create table "x(y" ( "a,b" text, [c d] REAL /* ) */, -- e, )` + "\n `f` INT)":                    "a,b c d f id=-1 [0 1 2]",
		`CREATE TABLE t (a INT PRIMARY KEY)`:                                                              "a id=-1 [0]",
		`CREATE TABLE t (a INTEGER PRIMARY KEY DESC)`:                                                     "a id=-1 [0]",
		`CREATE TABLE t (a, b INTEGER, CONSTRAINT k PRIMARY KEY (b))`:                                     "a b id=1 [0 1]",
		`CREATE TABLE t (a, b, c, PRIMARY KEY (c, "a")) WITHOUT ROWID`:                                    "a b c id=-1 [2 0 1]",
		`CREATE TABLE t (a INT, v INT GENERATED ALWAYS AS (a + 1), s AS (a) STORED, z)`:                   "a v s z id=-1 [0 2 3]",
		`CREATE TABLE t (a DECIMAL(10, 5) DEFAULT (1 + 2) CHECK (a IN (1, 2)), b INTEGER, UNIQUE (a, b))`: "a b id=-1 [0 1]",
	} {
		got, ok := declared(sql)
		if !ok {
			t.Errorf("%s is not read", sql)
			continue
		}
		if s := fmt.Sprint(strings.Join(got.Columns, " "), " id=", got.rowid, " ", got.stored); s != want {
			t.Errorf("%s: %s, want %s", sql, s, want)
		}
	}
	for _, sql := range []string{"", "CREATE", "CREATE TABLE t", "CREATE TABLE t (", "CREATE TABLE t (,)", "SELECT (1)", "CREATE TABLE t ()", `CREATE TABLE "t`} {
		if got, ok := declared(sql); ok {
			t.Errorf("%q makes columns %q", sql, got.Columns)
		}
	}
	for text, want := range map[string]any{"1": int64(1), "- 2": int64(-2), "1.5": 1.5, "'it''s'": "it's", "NULL": nil, "x'0aff'": []byte{10, 255}, "true": int64(1), "(1)": nil, "x'0'": nil, "": nil, "nan": nil} {
		if got := literal(tokenize(text)); fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
			t.Errorf("%q is %#v, want %#v", text, got, want)
		}
	}
}
