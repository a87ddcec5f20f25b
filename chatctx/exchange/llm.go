package exchange

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver, in Go alone

	"github.com/chatctx/chatctx/pool"
)

// The logs.db of simonw/llm: an SQLite database. Until 0.31 a row of responses holds a prompt, its answer, and what led from one to the other;
// since 0.32 messages lie by their hashes, each with that of the one before it, so that threads share their beginnings. Which tables and
// columns there are depends on the version: what is missing reads as null.

const llmName = "llm"

var sqliteMagic = []byte("SQLite format 3\x00")

func detectLLM(h *head) bool {
	if !bytes.HasPrefix(h.text, sqliteMagic) {
		return false
	}
	for _, name := range []string{"responses", "turns"} {
		for _, quoted := range []string{name, `"` + name + `"`, "[" + name + "]", "`" + name + "`"} {
			if bytes.Contains(h.text, []byte("CREATE TABLE "+quoted)) || bytes.Contains(h.text, []byte("CREATE TABLE IF NOT EXISTS "+quoted)) {
				return true
			}
		}
	}
	return false
}

func readLLM(r *reading) error {
	disk, done, err := r.onDisk()
	if err != nil {
		return err
	}
	defer done()
	if info, err := os.Stat(disk + "-wal"); err == nil && info.Size() > 0 && r.file.disk != "" {
		r.warn(place{}, "changes that lie in %s are not read; close the program that uses the database, or let it write them", filepath.Base(disk)+"-wal")
	}
	abs, err := filepath.Abs(disk)
	if err != nil {
		return err
	}
	name := (&url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}).String() + "?mode=ro&immutable=1&_pragma=trusted_schema(0)&_pragma=query_only(1)"
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return err
	}
	defer db.Close()
	l := &llm{r: r, db: db, ctx: r.ctx, columns: map[string][]string{}}
	if err := l.schema(); err != nil {
		return fmt.Errorf("a damaged SQLite database: %w", err)
	}
	switch {
	case l.columns["turns"] != nil && l.columns["messages"] != nil:
		err = l.threads()
		if err == nil && l.columns["responses"] != nil {
			err = l.responses()
		}
	case l.columns["responses"] != nil:
		err = l.responses()
	default:
		return errors.New("an SQLite database without a table of responses or turns")
	}
	return err
}

// database gives the file as one on disk that can be read at random.
func (r *reading) onDisk() (disk string, done func(), err error) {
	f := *r.file
	if f.disk != "" {
		if d, err := os.Open(f.disk); err == nil {
			b := make([]byte, len(sqliteMagic))
			_, err = io.ReadFull(d, b)
			d.Close()
			if err == nil && bytes.Equal(b, sqliteMagic) {
				return f.disk, func() {}, nil
			}
		}
		f.disk = "" // packed
	}
	f.open = func() (io.ReadCloser, error) { return io.NopCloser(r.buf), nil }
	return f.spool(r.ctx, r.limits)
}

type llm struct {
	r       *reading
	db      *sql.DB
	ctx     context.Context
	columns map[string][]string // of the tables that there are
}

// row is a row by its columns. A column that there is none of reads as null.
type row map[string]any

func (w row) str(name string) string {
	switch x := w[name].(type) {
	case string:
		return strings.ToValidUTF8(x, "\uFFFD")
	case []byte:
		return strings.ToValidUTF8(string(x), "\uFFFD")
	case int64:
		return strconv.FormatInt(x, 10)
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case time.Time:
		return x.UTC().Format(time.RFC3339Nano)
	}
	return ""
}

func (w row) null(name string) bool { return w[name] == nil }

func (w row) count(name string) *int64 {
	if n, ok := w[name].(int64); ok && n >= 0 {
		return &n
	}
	return nil
}

func (w row) time(name string) pool.Time { return parseTime(w.str(name)) }

// json is a column that holds JSON; nil for one that does not.
func (w row) json(name string) json.RawMessage {
	raw, bad := argumentText(w.str(name))
	if bad {
		return nil
	}
	return raw
}

// schema finds the tables that matter here. A view may not stand in for one.
func (l *llm) schema() error {
	rows, err := l.db.QueryContext(l.ctx, "SELECT name FROM sqlite_master WHERE type = 'table'")
	if err != nil {
		return err
	}
	names, err := scanStrings(rows)
	if err != nil {
		return err
	}
	for _, n := range names {
		if !slices.Contains(llmTables, n) {
			continue
		}
		rows, err := l.db.QueryContext(l.ctx, "SELECT name FROM pragma_table_info(?)", n)
		if err != nil {
			return err
		}
		if l.columns[n], err = scanStrings(rows); err != nil {
			return err
		}
	}
	return nil
}

// llmTables are the tables that are read.
var llmTables = []string{"conversations", "responses", "attachments", "prompt_attachments", "tool_results_attachments", "fragments", "prompt_fragments",
	"system_fragments", "tool_calls", "tool_results", "tools", "messages", "parts", "threads", "turns"}

func scanStrings(rows *sql.Rows) ([]string, error) {
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

// each runs a query over a table and calls f for each row. Columns that only weigh are left out.
func (l *llm) each(table, rest string, f func(w row) error, args ...any) error {
	cols := slices.DeleteFunc(slices.Clone(l.columns[table]), func(c string) bool { return c == "response_json" || c == "prompt_json" })
	if len(cols) == 0 {
		return nil
	}
	quoted := make([]string, len(cols))
	for i, c := range cols {
		quoted[i] = `"` + strings.ReplaceAll(c, `"`, `""`) + `"`
	}
	rows, err := l.db.QueryContext(l.ctx, "SELECT "+strings.Join(quoted, ", ")+` FROM "`+table+`" `+rest, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	vals, ptrs := make([]any, len(cols)), make([]any, len(cols))
	for i := range vals {
		ptrs[i] = &vals[i]
	}
	for rows.Next() {
		if err := rows.Scan(ptrs...); err != nil {
			return err
		}
		w := make(row, len(cols))
		for i, c := range cols {
			w[c] = vals[i]
		}
		if err := f(w); err != nil {
			return err
		}
	}
	return rows.Err()
}

// by gathers the rows of a table by a column.
func (l *llm) by(table, column, order string) (map[string][]row, error) {
	out := map[string][]row{}
	if !slices.Contains(l.columns[table], column) {
		return out, nil
	}
	if slices.Contains(l.columns[table], order) {
		order = `ORDER BY "` + order + `"`
	} else {
		order = "ORDER BY rowid"
	}
	err := l.each(table, order, func(w row) error {
		key := w.str(column)
		out[key] = append(out[key], w)
		return nil
	})
	return out, err
}

// attachment reads one by its id. What a path on somebody's disk names is not opened.
func (l *llm) attachment(id string) (pool.Part, error) {
	p := pool.Part{Type: "file_reference", Name: id, Raw: object("id", id)}
	err := l.each("attachments", "WHERE id = ?", func(w row) error {
		content, _ := w["content"].([]byte)
		switch {
		case len(content) > 0 && int64(len(content)) <= l.r.limits.Asset:
			p = dataPart(pool.DocumentPart, w.str("type"), filepath.Base(firstOf(w.str("path"), id)), bytes.Clone(content))
		case w.str("url") != "":
			p = mediaKind(pool.Part{Type: pool.DocumentPart, URL: w.str("url"), MediaType: w.str("type")})
		default:
			p.Name, p.Raw = filepath.Base(firstOf(w.str("path"), id)), w.object("id", "type", "path")
		}
		return nil
	}, id)
	return p, err
}

// object is a JSON object of columns that are not null.
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
