package exchange

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/internal/sqlite"
	"github.com/chatctx/chatctx/pool"
)

// Readers of SQLite databases find the opened database in head.db and reading.db. Its tables and columns depend on the version of the program that wrote it: a
// missing table has no rows, and a missing column reads as null.

// database is a SQLite database that is being read.
type database struct {
	*sqlite.DB
	ended func() error               // returns the error that ends the import, between two rows
	asked map[string]map[string]bool // the requested columns of each table that was read
}

// row returns a row of a table, which records the columns that are requested.
func (d *database) row(t *sqlite.Table, r sqlite.Row) row {
	if d.asked[t.Name] == nil {
		d.asked[t.Name] = map[string]bool{}
	}
	return row{t, r, d.asked[t.Name]}
}

// knows marks columns that are ignored on purpose, because they repeat others.
func (d *database) knows(table string, columns ...string) {
	if d.asked[table] == nil {
		d.asked[table] = map[string]bool{}
	}
	for _, c := range columns {
		d.asked[table][c] = true
	}
}

// unknown returns the columns with content, of tables that were read, that no reader requested: a later version of the program has added them.
func (d *database) unknown(structural map[string]bool) (out []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(d.asked)) {
		var more []int
		t := d.Table(name)
		if t == nil {
			continue
		}
		for i, c := range t.Columns {
			if !d.asked[name][c] && !structural[c] {
				more = append(more, i)
			}
		}
		if len(more) == 0 {
			continue
		}
		for r, err := range t.Rows() {
			if err == nil {
				err = d.ended()
			}
			if err != nil {
				return out, err
			}
			more = slices.DeleteFunc(more, func(i int) bool {
				says := r.Values[i] != nil && r.Values[i] != ""
				if says {
					out = append(out, fmt.Sprintf("column %s of the table %s", show.Clip(t.Columns[i], 60), show.Clip(name, 60)))
				}
				return says
			})
			if len(more) == 0 {
				break
			}
		}
	}
	return out, nil
}

// unread returns the tables with rows that no reader asked for. Those of SQLite, of search indexes and of migrations are structural.
func (d *database) unread() (out []string, err error) {
	for _, t := range d.Tables() {
		name := strings.ToLower(t.Name)
		if d.asked[t.Name] != nil || strings.HasPrefix(name, "sqlite_") || strings.Contains(name, "_fts") || strings.Contains(name, "migration") || strings.HasSuffix(name, "_version") {
			continue
		}
		for _, err := range t.Rows() {
			if err != nil {
				return out, err
			}
			out = append(out, "the table "+show.Clip(t.Name, 60))
			break
		}
	}
	return out, d.ended()
}

// unknownColumns reports columns and tables that a later version of the program has added to the database.
func (r *reading) unknownColumns() error {
	list, err := r.db.unknown(r.sieve().structural)
	if err == nil {
		var tables []string
		tables, err = r.db.unread()
		list = append(list, tables...)
	}
	if len(list) > 0 {
		r.warn(place{}, "tables or columns that this program does not know are left out: %s", show.Clip(strings.Join(list, ", "), 1000))
	}
	return err
}

// has reports whether there is a table with all of these columns.
func (d *database) has(table string, columns ...string) bool {
	if d == nil {
		return false
	}
	t := d.Table(table)
	return t != nil && !slices.ContainsFunc(columns, func(c string) bool { return t.Column(c) < 0 })
}

// rows returns the rows of a table, in the order of their ids. An error ends them.
func (d *database) rows(table string) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		t := d.Table(table)
		if t == nil {
			return
		}
		for r, err := range t.Rows() {
			if err == nil {
				err = d.ended()
			}
			if !yield(d.row(t, r), err) || err != nil {
				return
			}
		}
	}
}

// sorted returns the rows of a table in the order of columns, and then of their ids. Only the sort keys are held in memory, except for a table without row ids.
func (d *database) sorted(table string, columns ...string) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		all, err := d.grouped(table, "", columns...)
		if err != nil {
			yield(row{}, err)
			return
		}
		for r, err := range all.of("") {
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// grouped returns the rows of a table by the text of a column, or all under "" if column is "". Those of a group are in the order of columns, then of their
// ids.
func (d *database) grouped(table, column string, order ...string) (*groups, error) {
	g := &groups{d: d, name: table, places: map[string][]rowPlace{}, asked: map[string]bool{}}
	for w, err := range d.rows(table) {
		if err != nil {
			return nil, err
		}
		p := rowPlace{id: w.ID, order: make([]any, len(order))}
		for i, c := range order {
			p.order[i] = w.value(c)
		}
		if g.table = w.table; g.table.Keyed() {
			p.whole = &w
		}
		key := ""
		if column != "" {
			key = w.str(column)
		}
		g.places[key] = append(g.places[key], p)
	}
	if len(order) > 0 {
		for _, list := range g.places {
			slices.SortStableFunc(list, func(a, b rowPlace) int { return slices.CompareFunc(a.order, b.order, compareValues) })
		}
	}
	return g, nil
}

// groups are the rows of a table by a column.
type groups struct {
	d      *database
	name   string
	table  *sqlite.Table
	places map[string][]rowPlace
	asked  map[string]bool
}

// unasked reports the rows of groups that nothing requested, because the row that they belong to is gone.
func (r *reading) unasked(all ...*groups) {
	for _, g := range all {
		rows, keys := 0, []string{}
		for _, key := range slices.Sorted(maps.Keys(g.places)) {
			if !g.asked[key] {
				rows, keys = rows+len(g.places[key]), append(keys, key)
			}
		}
		if rows > 0 {
			r.warn(place{}, "rows of the table %s that belong to nothing are left out, %d in all: %s", g.name, rows, show.Clip(strings.Join(keys, ", "), 200))
		}
	}
}

// rowPlace says where to find a row again.
type rowPlace struct {
	id    int64
	order []any
	whole *row // the row itself, of a table without row ids
}

// of returns the rows of a group.
func (g *groups) of(key string) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		g.asked[key] = true
		for _, p := range g.places[key] {
			if p.whole != nil {
				if !yield(*p.whole, nil) {
					return
				}
				continue
			}
			r, found, err := g.table.Row(p.id)
			if err == nil {
				err = g.d.ended()
			}
			if err == nil && !found {
				continue // deleted while the database was read
			}
			if !yield(g.d.row(g.table, r), err) || err != nil {
				return
			}
		}
	}
}

// compareValues orders values as SQLite does: null, numbers, texts, bytes.
func compareValues(a, b any) int {
	rank := func(v any) int {
		switch v.(type) {
		case nil:
			return 0
		case int64, float64:
			return 1
		case string:
			return 2
		}
		return 3
	}
	if d := rank(a) - rank(b); d != 0 || a == nil {
		return d
	}
	switch x := a.(type) {
	case string:
		return strings.Compare(x, b.(string))
	case []byte:
		return slices.Compare(x, b.([]byte))
	case int64:
		if y, ok := b.(int64); ok {
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(number(a), number(b))
}

func number(v any) float64 {
	if n, ok := v.(int64); ok {
		return float64(n)
	}
	f, _ := v.(float64)
	return f
}

// row is a row with its columns. The zero row has none.
type row struct {
	table *sqlite.Table
	sqlite.Row
	asked map[string]bool // the requested columns
}

func (w row) value(name string) any {
	if w.table == nil {
		return nil
	}
	if i := w.table.Column(name); i >= 0 {
		if !w.asked[name] {
			w.asked[name] = true
		}
		return w.Values[i]
	}
	return nil
}

func (w row) str(name string) string {
	switch x := w.value(name).(type) {
	case string:
		return strings.ToValidUTF8(x, "\uFFFD")
	case []byte:
		return strings.ToValidUTF8(string(x), "\uFFFD")
	case int64:
		return strconv.FormatInt(x, 10)
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return ""
}

// bytes returns a column of bytes; nil if it has another type.
func (w row) bytes(name string) []byte {
	b, _ := w.value(name).([]byte)
	return b
}

func (w row) null(name string) bool { return w.value(name) == nil }

func (w row) count(name string) *int64 {
	if n, ok := w.value(name).(int64); ok && n >= 0 {
		return &n
	}
	return nil
}

func (w row) time(name string) pool.Time { return parseTime(w.str(name)) }

// json returns a column of JSON; nil if it is not JSON.
func (w row) json(name string) json.RawMessage {
	raw, bad := argumentText(w.str(name))
	if bad {
		return nil
	}
	return raw
}

// object returns a JSON object of the columns that are not null.
func (w row) object(names ...string) json.RawMessage {
	o := objectWriter{}
	for _, n := range names {
		switch {
		case w.null(n):
		case w.json(n) != nil:
			o.addRaw(n, w.json(n))
		default:
			o.addRaw(n, jsonText(w.str(n)))
		}
	}
	return o.done()
}

// openDatabase opens a SQLite database, as a copy if it is packed or in an archive.
func (im *importer) openDatabase(f *file, c *content) (*database, func(), error) {
	disk, done, err := im.onDisk(f, c)
	if err != nil {
		return nil, nil, err
	}
	if disk != f.disk {
		removeFile := done
		done = func() { removeFile(); os.Remove(disk + "-wal") }
		if err := im.copyLog(f, disk+"-wal"); err != nil {
			done()
			return nil, nil, err
		}
	}
	db, err := sqlite.Open(disk)
	if err != nil {
		done()
		return nil, nil, err
	}
	return &database{DB: db, ended: im.ctx.Err, asked: map[string]map[string]bool{}}, func() { db.Close(); done() }, nil
}

// copyLog copies the log of a database in an archive, if there is one.
func (im *importer) copyLog(f *file, to string) error {
	log, err := f.sibling(f.path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	from, done, err := log.spool(im.ctx, im.limits)
	if err != nil || log.disk != "" {
		return err
	}
	defer done()
	return os.Rename(from, to)
}

// onDisk returns a file as an unpacked one on disk, for random access. done removes it if it is a copy.
func (im *importer) onDisk(f *file, c *content) (path string, done func(), err error) {
	out := *f
	if out.disk == "" || c.packed {
		out.disk = ""
		out.open = func() (io.ReadCloser, error) { return io.NopCloser(c.Reader), nil }
	}
	return out.spool(im.ctx, im.limits)
}

// logged reports whether a database has changes in a log beside it, which neither its size nor its bytes show.
func (f *file) logged() bool {
	if f.disk == "" {
		return false
	}
	info, err := os.Stat(f.disk + "-wal")
	return err == nil && info.Size() > 0
}
