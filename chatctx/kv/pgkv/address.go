package pgkv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// defaultSchema is the schema of a store whose URL names none.
const defaultSchema = "chatctx"

// defaultConns is the largest number of connections of a process whose URL does not set it.
const defaultConns = 8

// address is a parsed URL.
type address struct {
	config *pgxpool.Config
	schema string
	// pooled: the URL turns the statement cache off, as for a pooler that passes a connection on after each transaction. Then nothing is kept in the
	// session.
	pooled bool
	secret []string // never shown
}

const form = "postgres://USER@HOST:PORT/DATABASE?search_path=SCHEMA"

func parse(text string) (*address, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, fmt.Errorf("the store's URL does not have the form %s; write a %%, /, @ or : within a name or password as %%25, %%2F, %%40, %%3A", form)
	}
	a := &address{schema: defaultSchema}
	q := u.Query()
	password, _ := u.User.Password()
	a.hide(password, q.Get("password"), q.Get("sslpassword"), os.Getenv("PGPASSWORD"))
	if !q.Has("pool_max_conns") {
		u.RawQuery = strings.TrimPrefix(u.RawQuery+"&pool_max_conns="+strconv.Itoa(defaultConns), "&") // the rest stays as it is: %20, which libpq reads, would become +, which it does not
	}
	if a.config, err = pgxpool.ParseConfig(u.String()); err != nil {
		return nil, a.parseError(err)
	}
	c := a.config.ConnConfig
	a.hide(c.Password)
	params := c.RuntimeParams
	if path, has := params["search_path"]; has {
		if a.schema, err = schemaName(path); err != nil {
			return nil, err
		}
		delete(params, "search_path") // names are written in full, so poolers need not pass it on
	}
	a.pooled = c.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, 5*time.Second)
	if len(c.Fallbacks) > 0 && c.ValidateConnect == nil && severalHosts(c) {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return a, nil
}

// severalHosts reports whether a URL has several hosts. pgx tries one host with and without TLS, which are fallbacks too.
func severalHosts(c *pgx.ConnConfig) bool {
	for _, f := range c.Fallbacks {
		if f.Host != c.Host || f.Port != c.Port {
			return true
		}
	}
	return false
}

// schemaName parses a search path with one name.
func schemaName(path string) (string, error) {
	name := strings.TrimSpace(path)
	if unquoted, ok := strings.CutPrefix(name, `"`); ok {
		name = strings.ReplaceAll(strings.TrimSuffix(unquoted, `"`), `""`, `"`)
	} else if strings.ContainsAny(name, `,"$`) {
		name = ""
	} else {
		name = strings.ToLower(name)
	}
	if name == "" || len(name) > 63 || strings.HasPrefix(name, "pg_") || name == "information_schema" || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("search_path=%s in the store's URL has to name one schema: the store's", path)
	}
	return name, nil
}

func (a *address) hide(secrets ...string) {
	for _, s := range secrets {
		if s != "" {
			a.secret = append(a.secret, s, url.QueryEscape(s), url.PathEscape(s))
		}
	}
}

// parseError removes the URL from pgx's message.
func (a *address) parseError(err error) error {
	cause := err
	for next := errors.Unwrap(cause); next != nil; next = errors.Unwrap(cause) {
		cause = next
	}
	text := cause.Error()
	if i := strings.LastIndex(text, "`: "); i >= 0 {
		text = text[i+3:]
	}
	return fmt.Errorf("the store's URL cannot be used; its form is %s: %s", form, a.scrub(text))
}

func (a *address) scrub(text string) string {
	for _, s := range a.secret {
		text = strings.ReplaceAll(text, s, "***")
	}
	return text
}

// clean returns err without passwords in its text.
func (a *address) clean(err error) error {
	if text := err.Error(); a.scrub(text) != text {
		return &cleaned{a.scrub(text), err}
	}
	return err
}

type cleaned struct {
	text string
	err  error
}

func (c *cleaned) Error() string { return c.text }
func (c *cleaned) Unwrap() error { return c.err }

func (a *address) user() string { return a.config.ConnConfig.User }
func (a *address) name() string { return a.config.ConnConfig.Database }

// table returns the full name of a table, quoted.
func (a *address) table(name string) string { return pgx.Identifier{a.schema, name}.Sanitize() }

// settings are those of each session, or of each transaction behind a pooler. Those in the URL take precedence.
func (a *address) settings(wait time.Duration) [][2]string {
	all := [][2]string{
		// A scan of the whole table would count as a read of every record, so writers would conflict without cause.
		{"enable_seqscan", "off"}, {"enable_bitmapscan", "off"},
		{"plan_cache_mode", "force_generic_plan"}, {"jit", "off"},
		{"lock_timeout", milliseconds(wait)},
		{"statement_timeout", milliseconds(statementLimit)},
		{"idle_in_transaction_session_timeout", milliseconds(idleLimit)},
	}
	out := all[:0]
	for _, s := range all {
		if _, own := a.config.ConnConfig.RuntimeParams[s[0]]; !own {
			out = append(out, s)
		}
	}
	return out
}

const (
	// statementLimit bounds a statement on the server, idleLimit how long a transaction waits for its program.
	statementLimit = time.Minute
	idleLimit      = 5 * time.Minute
)

// limit bounds a round trip: the server's time for a statement, and some for the network. After it, a frozen or unreachable server is given up.
func (a *address) limit() time.Duration {
	most := statementLimit
	if text := a.config.ConnConfig.RuntimeParams["statement_timeout"]; text != "" {
		if own, known := duration(text); !known || own == 0 { // the server will parse it
			most = 24 * time.Hour
		} else {
			most = own
		}
	}
	return most + 10*time.Second
}

// duration parses a time as PostgreSQL writes it: a number of milliseconds, or with a unit.
func duration(text string) (d time.Duration, known bool) {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(n) * time.Millisecond, true
	}
	d, err := time.ParseDuration(strings.Replace(strings.ReplaceAll(text, " ", ""), "min", "m", 1))
	return d, err == nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(max(d.Milliseconds(), 1), 10) }

// settle sends the settings of a session.
func (a *address) settle(ctx context.Context, c *pgx.Conn, wait time.Duration) error {
	var sql strings.Builder
	for _, s := range a.settings(wait) {
		fmt.Fprintf(&sql, "set %s = '%s'; ", s[0], s[1])
	}
	_, err := c.PgConn().Exec(ctx, sql.String()).ReadAll()
	return err
}

// settingsCall returns the call that sends the settings of a transaction.
func (a *address) settingsCall(wait time.Duration) statement {
	var calls []string
	for _, s := range a.settings(wait) {
		calls = append(calls, fmt.Sprintf("set_config('%s', '%s', true)", s[0], s[1]))
	}
	return plain("select " + strings.Join(calls, ", "))
}

func (a *address) introduce(program string) {
	if a.config.ConnConfig.RuntimeParams["application_name"] != "" {
		return
	}
	if program == "" {
		program = filepath.Base(os.Args[0])
	}
	a.config.ConnConfig.RuntimeParams["application_name"] = program
}
