package pgkv

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// Statements go to the server as pipelines: any number of them, and the answers, in one round trip. A named statement is prepared in the round trip in
// which a connection first uses it.

// statement is one of the few that a database uses. Parameters and results are binary.
type statement struct{ name, sql string }

// onServer is its name there. It differs if the text does: through a wrongly set pooler a program may come to a session in which another one, maybe of
// another store, has prepared statements.
func (s statement) onServer() string {
	return fmt.Sprintf("%s %08x", s.name, crc32.ChecksumIEEE([]byte(s.sql)))
}

func plain(sql string) statement { return statement{sql: sql} }

// call is a statement with its parameters.
type call struct {
	statement
	args [][]byte
}

func do(s statement, args ...[]byte) call { return call{s, args} }

// result is the result of one call.
type result struct {
	rows [][][]byte
	tag  string
}

// link is a connection and what pgkv knows of it.
type link struct {
	conn     *pgconn.PgConn
	id       [16]byte          // the key of its row in the table connection
	prepared map[string]string // the names that the server knows statements by
	unnamed  bool              // statements are not prepared, since another backend may run the next transaction
}

const linkKey = "chatctx"

// newLink returns the link of a new connection.
func newLink(c *pgx.Conn, unnamed bool) *link {
	l := &link{conn: c.PgConn(), prepared: map[string]string{}, unnamed: unnamed}
	rand.Read(l.id[:])
	c.PgConn().CustomData()[linkKey] = l
	return l
}

func linkOf(c *pgx.Conn) *link { return c.PgConn().CustomData()[linkKey].(*link) }

var binaryFormat = []int16{pgtype.BinaryFormatCode}

// errLost means that the connection broke, so it is unknown what the server did with the last calls.
var errLost = errors.New("the connection to the server was lost")

// run sends the calls in one pipeline and collects their results. After an error of the server the later calls had no effect, and the connection can be
// used again; after errLost it cannot.
func (l *link) run(ctx context.Context, limit time.Duration, calls ...call) ([]result, error) {
	sent, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	results, err := l.pipeline(sent, calls)
	var pg *pgconn.PgError
	if err == nil || errors.As(err, &pg) && !fatal(pg) && !l.conn.IsClosed() {
		return results, err
	}
	_ = l.conn.Close(sent)
	if ctx.Err() != nil {
		return nil, errors.Join(errLost, ctx.Err())
	}
	return nil, fmt.Errorf("%w: %w", errLost, err)
}

func (l *link) pipeline(ctx context.Context, calls []call) ([]result, error) {
	p := l.conn.StartPipeline(ctx)
	var fresh []string
	awaits := make([]bool, 0, 2*len(calls)) // true: an answer to a call, false: to a preparation
	for _, c := range calls {
		if c.name == "" || l.unnamed {
			p.SendQueryParams(c.sql, c.args, nil, binaryFormat, binaryFormat)
			awaits = append(awaits, true)
			continue
		}
		if l.prepared[c.name] == "" {
			l.prepared[c.name] = c.onServer()
			p.SendPrepare(l.prepared[c.name], c.sql, nil)
			fresh = append(fresh, c.name)
			awaits = append(awaits, false)
		}
		p.SendQueryPrepared(l.prepared[c.name], c.args, binaryFormat, binaryFormat)
		awaits = append(awaits, true)
	}
	err := p.Sync()
	results := make([]result, 0, len(calls))
	for _, isCall := range awaits {
		if err != nil {
			break
		}
		if err = l.take(p, isCall, &results); err == nil && !isCall {
			fresh = fresh[1:]
		}
	}
	if closeErr := p.Close(); err == nil {
		err = closeErr
	}
	for _, name := range fresh { // an error came before them
		delete(l.prepared, name)
	}
	return results, err
}

func (l *link) take(p *pgconn.Pipeline, isCall bool, results *[]result) error {
	answer, err := p.GetResults()
	if err != nil || !isCall {
		return err
	}
	reader, ok := answer.(*pgconn.ResultReader)
	if !ok {
		return fmt.Errorf("pgkv: the server answered with %T", answer)
	}
	var r result
	for reader.NextRow() {
		values := reader.Values()
		row := make([][]byte, len(values))
		for i, v := range values {
			if v != nil {
				row[i] = append(make([]byte, 0, len(v)), v...)
			}
		}
		r.rows = append(r.rows, row)
	}
	tag, err := reader.Close()
	r.tag = tag.String()
	*results = append(*results, r)
	return err
}

// encodeArray encodes a one-dimensional array in PostgreSQL's binary form; nil is NULL.
func encodeArray(elem uint32, items [][]byte) []byte {
	size := 20
	for _, item := range items {
		size += 4 + len(item)
	}
	b := make([]byte, 0, size)
	if len(items) == 0 {
		b = binary.BigEndian.AppendUint32(b, 0)
		b = binary.BigEndian.AppendUint32(b, 0)
		return binary.BigEndian.AppendUint32(b, elem)
	}
	for _, n := range []uint32{1, 1, elem, uint32(len(items)), 1} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	for _, item := range items {
		if item == nil {
			b = binary.BigEndian.AppendUint32(b, ^uint32(0))
			continue
		}
		b = binary.BigEndian.AppendUint32(b, uint32(len(item)))
		b = append(b, item...)
	}
	return b
}

func byteaArray(items [][]byte) []byte { return encodeArray(pgtype.ByteaOID, items) }

func textArray(items [][]byte) []byte { return encodeArray(pgtype.TextOID, items) }

func int4(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

func int8(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
