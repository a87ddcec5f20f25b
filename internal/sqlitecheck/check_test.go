package main

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/internal/sqlite"
	"github.com/chatctx/chatctx/internal/testkit"
)

// TestDatabases holds the databases that lie in the tree to the SQL beside them.
func TestDatabases(t *testing.T) {
	files, err := filepath.Glob("../../chatctx/exchange/testdata/*/*.sql")
	own, _ := filepath.Glob("../sqlite/testdata/*.sql")
	files = append(files, own...)
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		fresh := filepath.Join(t.TempDir(), "fresh.db")
		if err := build(file, fresh); err != nil {
			t.Fatal(file, err)
		}
		there := strings.TrimSuffix(file, ".sql") + ".db"
		want := bySQLite(t, fresh)
		same(t, there+" beside its SQL (go run . FILE.sql OUT.db makes it anew)", bySQLite(t, there), want)
		same(t, there, byReader(t, there), want)
	}
}

// same compares the rows of two databases and shows the first that differs.
func same(t *testing.T, what string, got, want map[string][][]any) {
	t.Helper()
	for name := range want {
		for i := range min(len(want[name]), len(got[name])) {
			if !reflect.DeepEqual(got[name][i], want[name][i]) {
				t.Fatalf("%s, table %s, row %d:\n%.300v\nwant\n%.300v", what, name, i, got[name][i], want[name][i])
			}
		}
		if len(got[name]) != len(want[name]) {
			t.Fatalf("%s, table %s: %d rows, want %d", what, name, len(got[name]), len(want[name]))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d tables, want %d", what, len(got), len(want))
	}
}

// bySQLite reads all rows of all tables with SQLite.
func bySQLite(t *testing.T, path string) map[string][][]any {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	out := map[string][][]any{}
	for _, row := range query(t, db, "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND rootpage > 0") {
		name := row[0].(string)
		columns := `"` + strings.Join(columnsOf(t, db, name), `", "`) + `"`
		out[name] = query(t, db, "SELECT "+columns+` FROM "`+name+`"`)
	}
	return out
}

// columnsOf lists a table's columns. Those that are worked out when they are read are null to a reader of the file.
func columnsOf(t *testing.T, db *sql.DB, table string) []string {
	var out []string
	for _, c := range query(t, db, "SELECT name, hidden FROM pragma_table_xinfo('"+table+"')") {
		out = append(out, strings.ReplaceAll(c[0].(string), `"`, `""`))
	}
	return out
}

func query(t *testing.T, db *sql.DB, q string) [][]any {
	t.Helper()
	rows, err := db.Query(q)
	if err != nil {
		t.Fatal(q, err)
	}
	defer rows.Close()
	names, _ := rows.Columns()
	var out [][]any
	for rows.Next() {
		vals, ptrs := make([]any, len(names)), make([]any, len(names))
		for i := range vals {
			ptrs[i] = &vals[i]
		}
		if err := rows.Scan(ptrs...); err != nil {
			t.Fatal(q, err)
		}
		for i, v := range vals {
			if b, ok := v.([]byte); ok && len(b) == 0 {
				vals[i] = []byte{} // the driver gives nil bytes
			}
		}
		out = append(out, vals)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(q, err)
	}
	return out
}

// byReader reads the same with the reader, each row a second time by its id.
func byReader(t *testing.T, path string) map[string][][]any {
	t.Helper()
	db, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(path, err)
	}
	defer db.Close()
	out := map[string][][]any{}
	for _, table := range db.Tables() {
		out[table.Name] = nil
		for row, err := range table.Rows() {
			if err != nil {
				t.Fatal(path, table.Name, err)
			}
			if !table.Keyed() {
				again, found, err := table.Row(row.ID)
				if err != nil || !found || !reflect.DeepEqual(again, row) {
					t.Fatalf("%s: row %d of %s is %v, by its id %v, %t, %v", path, row.ID, table.Name, row, again, found, err)
				}
			}
			out[table.Name] = append(out[table.Name], row.Values)
		}
		if _, found, err := table.Row(1 << 50); found || err != nil {
			t.Fatalf("%s: a row that nobody wrote: %t, %v", table.Name, found, err)
		}
	}
	return out
}

// TestRandom compares with SQLite over databases made at random: page sizes, encodings, with a log and without, rows changed and deleted, columns added.
func TestRandom(t *testing.T) {
	for seed := range testkit.Seeds(t, 30) {
		r := rand.New(rand.NewPCG(seed, 7))
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.db", seed))
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		run := func(q string, args ...any) {
			t.Helper()
			if _, err := db.Exec(q, args...); err != nil {
				t.Fatal(q, err)
			}
		}
		run("PRAGMA synchronous = OFF")
		run(fmt.Sprintf("PRAGMA page_size = %d", 512<<r.IntN(8)))
		run("PRAGMA encoding = '" + []string{"UTF-8", "UTF-16le", "UTF-16be"}[r.IntN(3)] + "'")
		run("PRAGMA auto_vacuum = " + fmt.Sprint(r.IntN(3)))
		logged := seed%2 == 0
		if logged {
			run("PRAGMA journal_mode = WAL")
			run("PRAGMA wal_autocheckpoint = 0")
		}
		run(`CREATE TABLE a (id INTEGER PRIMARY KEY, t TEXT, "odd ""name" REAL, [b,c] BLOB DEFAULT (1), n /* a note, with ( */ NUMERIC)`)
		run(`CREATE TABLE k (t TEXT, u INTEGER, v, x DOUBLE, PRIMARY KEY (v, t)) WITHOUT ROWID`)
		run(`CREATE TABLE d (x INTEGER PRIMARY KEY DESC, y INTEGER NOT NULL CHECK (y > -1), g AS (y + 1) STORED, CONSTRAINT z UNIQUE (x, y))`)
		run(`CREATE TABLE l (q TEXT, p INTEGER, PRIMARY KEY (p))`)
		for i := range 20 + r.IntN(200) {
			run("INSERT INTO a (id, t, n, \"odd \"\"name\") VALUES (?, ?, ?, ?)", i*1000+r.IntN(1000), text(r), value(r), value(r))
			run("INSERT OR REPLACE INTO k VALUES (?, ?, ?, ?)", text(r), value(r), fmt.Sprint(i, text(r)), r.IntN(9))
			run("INSERT INTO d (x, y) VALUES (?, ?)", -i, i)
			run("INSERT INTO l (q) VALUES (?)", text(r))
			switch r.IntN(12) {
			case 0:
				run("DELETE FROM a WHERE id % 7 = ?", r.IntN(7))
			case 1:
				run("UPDATE a SET t = ? WHERE id % 5 = ?", text(r), r.IntN(5))
			case 2:
				if logged && r.IntN(4) == 0 {
					run("PRAGMA wal_checkpoint(PASSIVE)")
				}
			}
		}
		run("ALTER TABLE a ADD COLUMN later TEXT DEFAULT 'it''s'")
		run("ALTER TABLE a ADD COLUMN more REAL DEFAULT -2")
		run("INSERT INTO a (later) VALUES ('now')")
		same(t, fmt.Sprintf("seed %d", seed), byReader(t, path), bySQLite(t, path))
		db.Close()
	}
}

func text(r *rand.Rand) string {
	return strings.Repeat([]string{"a", "ü", "日本", "😀", "x y "}[r.IntN(5)], r.IntN(1+r.IntN(1+r.IntN(3000))))
}

func value(r *rand.Rand) any {
	switch r.IntN(6) {
	case 0:
		return nil
	case 1:
		return int64(r.Uint64()) >> r.IntN(64)
	case 2:
		return r.NormFloat64()
	case 3:
		return []byte(text(r) + "b")
	case 4:
		return int64(r.IntN(3))
	}
	return text(r)
}
