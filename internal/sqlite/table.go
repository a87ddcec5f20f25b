package sqlite

import (
	"iter"
	"strings"
)

// Table is a table of a database, with its columns in the order of their declaration.
type Table struct {
	Name    string
	Columns []string

	db      *DB
	root    uint32
	columns []column
	rowid   int   // index of the column that is the row's id, -1 for none
	stored  []int // the column of each value of a record
	keyed   bool  // a table without row ids
}

// Row is a row: its id, which is 0 in a table without row ids, and a value for each column: nil, an int64, a float64, a string or a []byte.
type Row struct {
	ID     int64
	Values []any
}

// Tables returns the ordinary tables, in the order of their creation.
func (db *DB) Tables() []*Table { return db.tables }

// Table returns the table of a name, in any case, nil for none.
func (db *DB) Table(name string) *Table {
	for _, t := range db.tables {
		if strings.EqualFold(t.Name, name) {
			return t
		}
	}
	return nil
}

// Column returns the index of the column of a name, in any case, -1 for none.
func (t *Table) Column(name string) int {
	for i, c := range t.Columns {
		if strings.EqualFold(c, name) {
			return i
		}
	}
	return -1
}

// Keyed reports whether the table is one without row ids: Row finds nothing in it.
func (t *Table) Keyed() bool { return t.keyed }

// Rows reads the table in the order of its row ids, or of its key. It yields an error last and then ends.
func (t *Table) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		budget := int64(t.db.pages)
		_, err := t.db.walk(t.root, 0, &budget, func(id int64, record []byte) (bool, error) {
			row, err := t.row(id, record)
			if err != nil {
				return false, err
			}
			return yield(row, nil), nil
		})
		if err != nil {
			yield(Row{}, err)
		}
	}
}

// Row returns the row of an id, and whether there is one. A table without row ids has none.
func (t *Table) Row(id int64) (Row, bool, error) {
	if t.keyed {
		return Row{}, false, nil
	}
	record, err := t.db.find(t.root, id)
	if err != nil || record == nil {
		return Row{}, false, err
	}
	row, err := t.row(id, record)
	return row, err == nil, err
}

// row decodes a record into the order of the columns. A column that was added after the row was written has its default.
func (t *Table) row(id int64, record []byte) (Row, error) {
	values, err := t.db.values(record)
	if err != nil {
		return Row{}, err
	}
	row := Row{ID: id, Values: make([]any, len(t.columns))}
	for i, c := range t.stored {
		if i >= len(values) {
			row.Values[c] = t.columns[c].fallback
			continue
		}
		row.Values[c] = values[i]
		if n, ok := values[i].(int64); ok && t.columns[c].real {
			row.Values[c] = float64(n) // SQLite stores whole numbers of a float column as integers
		}
	}
	if t.rowid >= 0 {
		row.Values[t.rowid] = id
	}
	return row, nil
}

// schema reads the list of tables.
func (db *DB) schema() error {
	master := &Table{db: db, root: 1, rowid: -1, columns: make([]column, 5), stored: []int{0, 1, 2, 3, 4}}
	for row, err := range master.Rows() {
		if err != nil {
			return err
		}
		kind, _ := row.Values[0].(string)
		name, _ := row.Values[1].(string)
		root, _ := row.Values[3].(int64)
		sql, _ := row.Values[4].(string)
		if kind != "table" || root <= 0 || root > int64(db.pages) {
			continue // a view or an index; a virtual table has no pages
		}
		if t, ok := declared(sql); ok {
			t.Name, t.db, t.root = name, db, uint32(root)
			db.tables = append(db.tables, t)
		}
	}
	return nil
}
