package cli

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/serve"
	"github.com/chatctx/chatctx/chatctx/serve/page"
	"github.com/chatctx/chatctx/internal/leftover"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/pool"
)

func init() { lookGroups = append(lookGroups, tokenLooks) }

func serveCommands() []*command {
	return []*command{
		{name: "serve", does: "serve the store to other programs: over HTTP, or over standard input and output", scope: onStore, run: in(doServe),
			more: "docs/api.md has the API. Over a Unix socket, which only you can use, no token is needed; on this machine there is one for the run, which is printed; where others can reach the address, tokens of serve token are required. Ctrl-C ends it.",
			json: "address, token; with --stdio the protocol alone", example: `chatctx serve --listen 8080
chatctx serve --stdio
chatctx serve --listen unix:/run/user/1000/chatctx.sock`,
			subs: []*command{
				{name: "token", does: "tokens, which let other programs in", scope: onStore, subs: []*command{{name: "add"}, {name: "ls"}, {name: "rm"}}},
			}},
		{name: "web", does: "look at the store in a browser", scope: onStore, run: in(doWeb),
			more: "It opens the page on this machine and prints an address that works once; Enter prints another. Ctrl-C ends it. If there is no store yet, web makes one.",
			json: "address", example: "chatctx web"},
	}
}

func tokenLooks() map[string]look {
	return map[string]look{
		"tokens.add": preparing(func(_ *run, in *operation.NewToken) error {
			for s := range strings.SplitSeq(in.Scope, ",") {
				in.Scopes = append(in.Scopes, strings.TrimSpace(s))
			}
			return operation.CheckRights(in.Scopes)
		}, as(func(r *run, in *operation.NewToken, out operation.Token) {
			r.printf("%s\n", out.Secret)
			r.note("the secret is shown only this once; remove the token: %s", r.onStore("serve token rm "+quote(in.Token)))
		})),
		"tokens.list": as(func(r *run, _ *struct{}, t operation.Token) {
			r.printf("%s  %s  %s  %s\n", pad(clean(t.Token), 16), pad(strings.Join(t.Scopes, ","), 30), moment(pool.TimeOf(*t.Created)), clean(t.By))
		}).orNone(func(r *run) { r.note("no tokens; chatctx serve token add NAME makes one") }),
		"tokens.remove": as(func(r *run, in *operation.OldToken, _ operation.Removed) {
			r.printf("%s lets nobody in any more\n", clean(in.Token))
		}),
	}
}

// listenFlags say where a server can be reached, and how.
type listenFlags struct {
	Listen string   `flag:"listen" doc:"the {ADDRESS}: HOST:PORT, a PORT of this machine, or unix:PATH; else a free port of this machine"`
	Cert   string   `flag:"cert" doc:"speak TLS with the certificate in {FILE}"`
	Key    string   `flag:"cert-key" old:"key" doc:"the certificate's key in {FILE}"`
	Host   []string `flag:"host" doc:"a {NAME} under which others reach this address; may be given again. Without it any name is taken where a token is required"`
}

// server is a server on a store, and its address.
type server struct {
	*serve.Server
	listener net.Listener
	cert     *tls.Certificate
	address  string // http://HOST:PORT, or unix:PATH
}

// server prepares what serve and web run. files are those of the page, nil for none.
func (r *run) server(st *chatctx.Store, in listenFlags, files fs.FS) (*server, error) {
	s := &server{}
	if (in.Cert == "") != (in.Key == "") {
		return nil, usagef("--cert and --cert-key go together: give both")
	}
	if in.Cert != "" {
		cert, err := tls.LoadX509KeyPair(in.Cert, in.Key)
		if err != nil {
			return nil, fmt.Errorf("the certificate cannot be used: %w", err)
		}
		s.cert = &cert
	}
	l, err := serve.Listen(in.Listen)
	if err != nil {
		return nil, err
	}
	s.listener, s.address = l, reached(l)
	path, unix := strings.CutPrefix(in.Listen, "unix:")
	switch {
	case unix:
		s.address = "unix:" + path
	case s.cert != nil:
		s.address = "https://" + s.address
	default:
		s.address = "http://" + s.address
	}
	o := serve.Options{Hosts: in.Host, Trusted: unix, Page: files, Executor: r.ofRequest, Places: r.machine().Places}
	if len(o.Hosts) == 0 && serve.Beyond(l) {
		o.Hosts = []string{"*"}
	}
	s.Server = serve.New(st, o)
	err = s.MayServe(r.ctx, l)
	if errors.Is(err, serve.ErrNoToken) {
		err = &hinted{&record.ConflictError{Text: err.Error()}, "make one: " + r.onStore("serve token add NAME --scope read,write")}
	}
	if err != nil {
		l.Close()
	}
	return s, err
}

// reached returns the address of a listener for programs of this machine: one that listens on all addresses is called localhost.
func reached(l net.Listener) string {
	a, ok := l.Addr().(*net.TCPAddr)
	if !ok || !a.IP.IsUnspecified() {
		return l.Addr().String()
	}
	return net.JoinHostPort("localhost", strconv.Itoa(a.Port))
}

// warn says what others can do if they can reach the address.
func (s *server) warn(r *run) {
	if !serve.Beyond(s.listener) {
		return
	}
	if a, ok := s.listener.Addr().(*net.TCPAddr); ok && a.IP.IsUnspecified() {
		r.note("it listens on all addresses of this machine: others use its name in place of localhost")
	}
	if s.cert == nil {
		r.note("without --cert and --cert-key everybody on the way can read along: put a proxy with TLS before it")
	}
}

// ofRequest runs the tools of one request.
func (r *run) ofRequest(c *chatctx.ChatContext) (*approval.Executor, func()) {
	own := *r // with executors that end with the request
	own.executors = &executors{}
	e := own.executor(c)
	e.Show = nil // the answer tells the caller
	return e, own.executors.close
}

// answer answers until the command ends.
func (s *server) answer(r *run) error {
	defer s.Close()
	return s.Serve(r.ctx, s.listener, s.cert)
}

type serveIn struct {
	Stdio bool `flag:"stdio" doc:"speak JSON-RPC 2.0 over standard input and output, a message a line, until the input ends"`
	listenFlags
}

func doServe(r *run, in *serveIn) error {
	if in.Stdio && (in.Listen != "" || in.Cert != "" || len(in.Host) > 0) {
		return usagef("serve takes --stdio or an address, not both")
	}
	st, err := r.writer()
	if err != nil && in.Stdio {
		printError(r.con.err, err, r.json())
		if err := serve.RefuseStdio(r.ctx, os.Stdin, os.Stdout, err); err != nil {
			return err
		}
		return &toldError{err}
	}
	if err != nil {
		return err
	}
	if in.Stdio {
		s := serve.New(st, serve.Options{Executor: r.ofRequest, Places: r.machine().Places})
		defer s.Close()
		return s.ServeStdio(r.ctx, os.Stdin, os.Stdout)
	}
	s, err := r.server(st, in.listenFlags, nil)
	if err != nil {
		return err
	}
	v := map[string]string{"address": s.address}
	if !serve.Beyond(s.listener) && !strings.HasPrefix(s.address, "unix:") {
		v["token"] = s.RunToken()
	}
	s.warn(r)
	err = r.emit(v, func() {
		r.printf("%s\n", s.address)
		if v["token"] != "" {
			r.printf("%s\n", v["token"])
			r.note("the second line is a token for this run: Authorization: Bearer TOKEN")
		}
	})
	if err != nil {
		return err
	}
	r.con.out.flush()
	return s.answer(r)
}

type webIn struct {
	NoOpen bool `flag:"no-open" doc:"do not open a browser"`
	listenFlags
}

func doWeb(r *run, in *webIn) error {
	if strings.HasPrefix(in.Listen, "unix:") {
		return usagef("a browser cannot use a Unix socket: web --listen takes HOST:PORT")
	}
	st, err := r.creator()
	if err != nil {
		return err
	}
	s, err := r.server(st, in.listenFlags, page.Files)
	if err != nil {
		return err
	}
	s.warn(r)
	show := func() error {
		address := s.address + s.Opening()
		err := r.emit(map[string]string{"address": address}, func() { r.printf("%s\n", address) })
		r.con.out.flush()
		return err
	}
	if err := show(); err != nil {
		return err
	}
	r.note("the address works once; Enter prints another, Ctrl-C ends it")
	if !in.NoOpen {
		remove, err := openPage(s.address + s.Opening())
		if err != nil {
			r.note("no browser could be opened: %s", clean(err.Error()))
		}
		defer remove()
	}
	go func() {
		for in := bufio.NewScanner(r.con.in); in.Scan(); {
			if show() != nil {
				return
			}
		}
	}()
	return s.answer(r)
}

// openPage makes the browser read a file of this user's that leads to the address, so that no list of processes shows the address. remove removes the file.
func openPage(address string) (remove func(), err error) {
	remove = func() {}
	dir, err := os.MkdirTemp("", leftover.Name("web"))
	if err != nil {
		return remove, err
	}
	remove = func() { os.RemoveAll(dir) }
	file := filepath.Join(dir, "open.html")
	leads := `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=` + html.EscapeString(address) + `"><title>chatctx</title>`
	if err := os.WriteFile(file, []byte(leads), 0o600); err != nil {
		return remove, err
	}
	line := []string{"xdg-open", file}
	switch runtime.GOOS {
	case "darwin":
		line[0] = "open"
	case "windows":
		line = []string{"rundll32", "url.dll,FileProtocolHandler", file}
	}
	cmd := exec.Command(line[0], line[1:]...)
	if err := cmd.Start(); err != nil {
		return remove, err
	}
	go cmd.Wait()
	return remove, nil
}
