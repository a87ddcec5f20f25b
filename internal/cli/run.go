package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	xansi "github.com/charmbracelet/x/ansi"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/codec"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/internal/view"
)

// run is one running command: its arguments and flags, and what all commands share.
type run struct {
	ctx       context.Context
	con       *console
	cmd       *command
	name      string // as typed: "branch ls"
	line      *parsed
	in        any               // the command's parameters
	common    commonFlags       // the shared ones. Completion puts those of the line over them that is being typed
	talks     talks             // how the command talks with a model
	wait      time.Duration     // for a file that others hold; 0: the library's default
	st        *chatctx.Store    // the one opened last
	done      *record.Committed // the change that an operation made, for its look
	opened    *closers
	executors *executors
	piped     *piped // standard input that is offered and that the command line does not ask for; nil: none
	asIs      bool   // messages are printed unchanged, even on a terminal
	carried   bool   // the sub-contexts of the branch have gone on already
}

func (r *run) json() bool                   { return r.common.JSON }
func (r *run) contextRef() string           { return r.common.Context }
func (r *run) branchName() string           { return r.common.Branch }
func (r *run) stopped() bool                { return r.con.out.stopped() || r.ctx.Err() != nil }
func (r *run) paint(style, s string) string { return r.con.paint(style, s) }

// storePath returns the file of the store, or its URL.
func (r *run) storePath() (string, error) {
	if p := r.common.Store; p != "" {
		return p, nil
	}
	return defaultStore()
}

// defaultStore is chatctx/chats.db in the folder for a user's data.
func defaultStore() (string, error) {
	dir, err := userDir("XDG_DATA_HOME", "share")
	if err != nil {
		return "", &hinted{fmt.Errorf("no place for the store: %w", err), "name one: --store FILE, or CHATCTX_STORE"}
	}
	return filepath.Join(dir, "chats.db"), nil
}

// userDir is chatctx's folder in the user's folder that a variable names, else in that of the system, ~/.local/NAME if it has none.
func userDir(variable, name string) (string, error) {
	dir := os.Getenv(variable)
	if !filepath.IsAbs(dir) {
		dir = ""
		if runtime.GOOS == "windows" {
			dir = os.Getenv("LOCALAPPDATA")
		}
	}
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".local", name)
	}
	return filepath.Join(dir, "chatctx"), nil
}

// reader opens the store to read it.
func (r *run) reader() (*chatctx.Store, error) { return r.open(chatctx.Options{ReadOnly: true}) }

// writer opens the store to change it.
func (r *run) writer() (*chatctx.Store, error) { return r.open(chatctx.Options{}) }

// changer opens the store to change it, in a dry run only to read it.
func (r *run) changer(in dryRunFlag) (*chatctx.Store, error) {
	if in.DryRun {
		return r.reader()
	}
	return r.writer()
}

// creator opens the store to change it and makes it if there is none.
func (r *run) creator() (*chatctx.Store, error) { return r.open(chatctx.Options{Create: true}) }

func (r *run) open(o chatctx.Options) (*chatctx.Store, error) {
	r.checkEnv()
	path, err := r.storePath()
	if err != nil {
		return nil, err
	}
	// A command reads several times in a row: if it let the file go in between, it would wait for its turn beside a busy program each time.
	o.IdleHold, o.Wait, o.Program, o.Judge = time.Millisecond, r.wait, "chatctx", approval.Rules{}
	if isURL(path) {
		return r.openURL(path, o)
	}
	if o.Create {
		if err := r.folderOf(path); err != nil {
			return nil, err
		}
	}
	st, err := chatctx.Open(path, o)
	if err != nil {
		return nil, storeHint(err, path)
	}
	r.keep(st)
	due, err := care.PurgeDue(r.ctx, base.Of(st))
	if err != nil {
		return nil, storeHint(err, path)
	}
	r.sayWarnings()
	if due {
		r.note("a purge or redaction was cut short: its bytes are still in the file, until a command that writes has room to write it anew")
	}
	return st, nil
}

// folderOf refuses to make a store in a folder that is not there, if the user named the place: the drive may be missing, and a second history would begin
// under its mount point. Only init makes such folders.
func (r *run) folderOf(path string) error {
	dir := filepath.Dir(path)
	if dir == filepath.VolumeName(path)+"." { // names no folder; on Windows a:b.db, which opening refuses
		return nil
	}
	if _, err := os.Stat(dir); r.name == "init" || r.common.Store == "" || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &hinted{fmt.Errorf("%w: %s, and the folder %s is not there, so no new store is made", chatctx.ErrNotExist, path, dir),
		"connect the drive or correct the path; or make a new store with its folders: chatctx init --store " + quote(path)}
}

// sayWarnings prints what the user should know of the store itself, each sentence once.
func (r *run) sayWarnings() {
	for _, text := range r.st.Warnings() {
		if _, before := r.con.told.LoadOrStore(text, true); before {
			continue
		}
		if !r.json() {
			text = "warning: " + text
		}
		r.warn(text)
	}
}

// warn prints a line on standard error for the person, and under --json too, since what it says is about data.
func (r *run) warn(text string) {
	if r.json() {
		fmt.Fprintf(r.con.err, "{\"warning\":%s}\n", jsontree.AppendString(nil, text))
		return
	}
	r.notice(text)
}

// sayWaiting says whom the command waits for. Others may print meanwhile: it is one write, and touches nothing of theirs.
func (r *run) sayWaiting(h kv.Holder) {
	if !r.json() && !r.common.Quiet {
		fmt.Fprintf(r.con.err, "waiting for the store: %s\n", h)
	}
}

// keep makes st the store of the command until it ends.
func (r *run) keep(st *chatctx.Store) {
	r.st = st
	r.opened.add(func() { st.Close() })
}

// apart is a run of its own beside r, which opens the store itself and has to be closed.
func (r *run) apart() *run {
	a := *r
	a.st, a.opened, a.executors = nil, &closers{}, &executors{}
	return &a
}

// close closes the store, as often as it was opened.
func (r *run) close() {
	r.executors.close()
	if r.st != nil {
		r.sayWarnings()
	}
	r.opened.close()
	r.st = nil
}

// closers close what a command and the copies of its run opened, when it ends: a command that reads first and then changes opens its store twice. Tasks that run
// at the same time, and requests that a server answers, add to them at the same time.
type closers struct {
	mu  sync.Mutex
	all []func()
}

func (c *closers) add(end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, end)
}

func (c *closers) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, end := range c.all {
		end()
	}
	c.all = nil
}

// conversation opens the store for reading and finds the context that the flags name.
func (r *run) conversation() (*chatctx.ChatContext, error) {
	st, err := r.reader()
	if err != nil {
		return nil, err
	}
	c, err := st.Context(r.ctx, r.contextRef())
	return c, contextHint(err)
}

// snapshot opens the store for reading and returns the branch that the flags name, with what a dead program left of an answer. It writes nothing.
func (r *run) snapshot() (*chatctx.ChatContext, *chatctx.Snapshot, error) {
	c, err := r.conversation()
	if err != nil {
		return nil, nil, err
	}
	return operation.Present(r.ctx, c, r.branchName())
}

// snapshotToChange is snapshot for a command that changes what it read: it first puts what a dead program left of an answer on the branch.
func (r *run) snapshotToChange() (*chatctx.ChatContext, *chatctx.Snapshot, error) {
	c, err := r.conversation()
	if err != nil {
		return nil, nil, err
	}
	if claim, err := view.Running(r.ctx, base.ContextOf(c.Store(), c.ID), r.branchName()); err == nil && claim != nil && !base.Held(claim, base.Of(r.st).Now()) {
		r.settle(c)
	}
	return r.snapshot()
}

// most returns what -n says, 0 if it is not given.
func (r *run) most(n *int) (int, error) {
	if n != nil && *n < 1 {
		return 0, usagef("%s -n takes a number of 1 or more", r.name)
	}
	return valueOf(n), nil
}

// compactsApart reports whether the provider of a branch makes its compaction again when it is asked.
func (r *run) compactsApart(id chatctx.ID, branch string) bool {
	c, err := r.st.Context(r.ctx, id.String())
	if err != nil {
		return false
	}
	o, err := operation.WindowOptions(r.ctx, r.turn(c, branch))
	return err == nil && o.ProviderCompacts
}

// noteSummaries says what became of summaries that tell of messages which a change concerns, and what makes them anew. Only a provider makes its own anew, when
// a conversation has grown.
func (r *run) noteSummaries(c *record.Committed) {
	for _, s := range c.Summaries {
		whose, what, then, cmd := "the summary", "no longer stands, so the messages are sent themselves", "to make it anew", "compact"
		switch {
		case s.Provider != "" && s.Stands && r.compactsApart(c.Context, s.Branch):
			what, then, cmd = "still tells of it", "to have it made anew, without it", "compact --anew"
		case s.Provider != "" && s.Stands:
			what, then = "still tells of it", "for a summary of ours in its place, without it"
		case s.Stands:
			what, cmd = "still tells of it", "compact --anew"
		case s.From > 1:
			cmd = "compact --from REF --to REF"
		}
		if s.Branch != c.Branch {
			cmd += " --branch " + quote(s.Branch)
		}
		if s.Provider != "" {
			whose = "the compaction by " + clean(s.Provider)
		}
		if s.Provider != "" && !s.Stands {
			r.note("%s of the messages %d to %d %s; when they are too large again, it can compact them anew", whose, s.From, s.To, what)
			continue
		}
		r.note("%s of the messages %d to %d %s; %s: %s", whose, s.From, s.To, what, then, r.again(cmd))
	}
}

// typedStore returns the store of the command line, "" if it comes from the environment.
func (r *run) typedStore() string { return unlessFrom("CHATCTX_STORE", r.common.Store) }

// typedContext is typedStore for the conversation.
func (r *run) typedContext() string { return unlessFrom("CHATCTX_CONTEXT", r.common.Context) }

func unlessFrom(variable, value string) string {
	if value == os.Getenv(variable) {
		return ""
	}
	return value
}

// emit prints v as one line of JSON, or calls text.
func (r *run) emit(v any, text func()) error {
	if r.json() {
		return r.printJSON(v)
	}
	text()
	return nil
}

// printJSON prints a line of JSON, in which no object has a name twice.
func (r *run) printJSON(v any) error {
	line, err := codec.AppendText(nil, v)
	if err != nil {
		return err
	}
	_, err = r.out(screen.JSONWriter).Write(append(line, '\n'))
	return err
}

// out is standard output for foreign bytes: on a terminal they pass through safe.
func (r *run) out(safe func(io.Writer) io.Writer) io.Writer {
	if r.con.tty {
		return safe(r.con.out)
	}
	return r.con.out
}

// printf prints data. It does not fail: a loop checks stopped, and the end of the command reports the error.
func (r *run) printf(format string, args ...any) { fmt.Fprintf(r.con.out, format, args...) }

// row prints a line of a table. On a terminal what does not fit stands below, indented; what goes to another program is one line.
func (r *run) row(indent int, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if r.con.tty {
		line = strings.ReplaceAll(xansi.Wrap(line, max(r.con.width-indent, 10), ""), "\n", "\n"+strings.Repeat(" ", indent))
	}
	fmt.Fprintln(r.con.out, line)
}

// onLines joins parts of a note: on one line, or, on a terminal that is too narrow, each on its own, so that no command is broken within a word.
func (r *run) onLines(parts []string) string {
	line := strings.Join(parts, "; ")
	if r.con.errs && xansi.StringWidth(line) > r.con.width {
		return strings.Join(parts, "\n  ")
	}
	return line
}

// note prints a line for the person on standard error, after what was printed so far. Under --json and --quiet it prints nothing.
func (r *run) note(format string, args ...any) {
	if !r.json() && !r.common.Quiet {
		r.notice(fmt.Sprintf(format, args...))
	}
}

// notice prints a line on standard error, after what was printed so far.
func (r *run) notice(text string) {
	r.con.out.flush()
	if r.con.hint != nil {
		text = r.con.hint(text)
	}
	fmt.Fprintf(r.con.err, "%s\n", r.paintErr(dim, text))
}

// paintErr gives a style to text for standard error.
func (r *run) paintErr(style, s string) string {
	if !r.con.errs && r.con.live == nil {
		return s
	}
	return r.con.paint(style, s)
}

// confirm asks before something that undo cannot take back. Without --yes and without a terminal it refuses, and names the command to run.
func (r *run) confirm(in yesFlag, question string, otherwise error) error {
	if in.Yes {
		return nil
	}
	if !r.con.asks() || r.json() {
		return &hinted{otherwise, "if you mean it: " + r.again(r.line.typed("--yes"))}
	}
	r.con.out.flush()
	fmt.Fprintf(r.con.err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(r.con.in).ReadString('\n')
	if err != nil && answer == "" {
		return err
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return otherwise
	}
	return nil
}

// storeHint adds the path to an error of opening, and what to type first.
func storeHint(err error, path string) error {
	code, _ := classify(err)
	switch code {
	case exitNoStore:
		if isURL(path) {
			return &hinted{err, "chatctx init makes one there"}
		}
		if to, err := os.Readlink(path); err == nil {
			return &hinted{fmt.Errorf("%w: %s is a link to %s, where there is nothing", chatctx.ErrNotExist, path, clean(to)), "make a store there by that name, or remove the link"}
		}
		return &hinted{fmt.Errorf("%w: %s", chatctx.ErrNotExist, path), firstSteps}
	case exitDamaged, exitVersion:
		if !isURL(path) && !strings.Contains(err.Error(), path) {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return err
}

// wantsTerminal refuses a command that has no terminal of its own: none at all, or the one that a chat has.
func (r *run) wantsTerminal(text, hint string) error {
	if r.con.hint != nil {
		return &usageError{r.name + " needs the terminal, which the chat has", "end the chat first: /quit"}
	}
	return &usageError{text, hint}
}

// firstSteps is what to type on a machine without a store.
const firstSteps = `begin a conversation:  chatctx new "A title"
or bring yours:        chatctx import conversations.json`
