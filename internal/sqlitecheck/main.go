// Sqlitecheck makes SQLite databases of files of SQL, for tests, and holds internal/sqlite to what SQLite itself reads. It is a module of its own,
// so that nobody who builds or tests chatctx compiles SQLite.
//
//	go run . FILE.sql OUT.db
package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"

	_ "modernc.org/sqlite"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sqlitecheck FILE.sql OUT.db")
		os.Exit(2)
	}
	if err := build(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sqlitecheck:", err)
		os.Exit(1)
	}
}

// build makes a database of a file of SQL. Its pages are small, which makes it small and gives readers many pages.
func build(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	db, err := sql.Open("sqlite", to)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.Exec("PRAGMA page_size = 512;\n" + string(text))
	return err
}
