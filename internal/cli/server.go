package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	_ "github.com/chatctx/chatctx/chatctx/kv/pgkv" // opens postgres://
	"github.com/chatctx/chatctx/internal/base"
)

// initCommand makes a store, which on a server no other command does.
func initCommand() *command {
	return &command{name: "init", does: "make an empty store, in a file or on a PostgreSQL server", scope: onStore, do: doInit,
		more: `Other commands make a file where there is none, and nothing on a server: there the database's owner runs chatctx init once. The URL names the database, and the schema by search_path
(else chatctx). A store that is there already is a conflict (5).`,
		json: "store, id", example: `chatctx init --store 'postgres://me@db.example.org/team?search_path=chats'`}
}

func doInit(r *run) error {
	path, err := r.storePath()
	if err != nil {
		return err
	}
	_, err = r.open(chatctx.Options{ReadOnly: true})
	if err == nil {
		return fmt.Errorf("a store %w: %s", errExists, shownStore(path))
	}
	if !errors.Is(err, chatctx.ErrNotExist) {
		return err
	}
	st, err := r.open(chatctx.Options{Create: true})
	if err != nil {
		return err
	}
	id, err := st.ID(r.ctx)
	if err != nil {
		return err
	}
	return r.emit(map[string]any{"store": shownStore(path), "id": id}, func() {
		r.printf("made the store %s\n", clean(shownStore(path)))
		if r.onServer() != nil {
			r.note("let others in: %s", r.onStore("grant writer USER"))
		}
	})
}

// isURL reports whether a store is named by a URL and not by a file.
func isURL(path string) bool { return kv.Scheme(path) != "" }

// shownStore returns a store's name as others may see it.
func shownStore(path string) string {
	if isURL(path) {
		return kv.Shown(path)
	}
	return path
}

// openURL opens a store on a server. Only init makes one there.
func (r *run) openURL(path string, o chatctx.Options) (*chatctx.Store, error) {
	if o.Create && r.name != "init" {
		o.Create = false
	}
	o.Place = placeOf
	if !o.Create { // init has opened it to look, before
		r.notePassword(r.typedStore())
	}
	st, err := chatctx.Open(path, o)
	if err != nil {
		return nil, storeHint(err, path)
	}
	r.keep(st)
	return st, nil
}

// notePassword gives a hint if a URL of the command line has a password in it.
func (r *run) notePassword(typed ...string) {
	if slices.ContainsFunc(typed, hasPassword) {
		r.note("others on this machine can read the password in the list of programs: put the URL into CHATCTX_STORE, or the password into PGPASSWORD, ~/.pgpass or a service file")
	}
}

func hasPassword(text string) bool {
	u, err := url.Parse(text)
	if err != nil || !isURL(text) {
		return false
	}
	_, in := u.User.Password()
	return in || u.Query().Has("password") || u.Query().Has("sslpassword")
}

// onServer returns the engine of the open store if a server keeps it, else nil.
func (r *run) onServer() kv.Hosted {
	if r.st == nil {
		return nil
	}
	h, _ := base.Of(r.st).Engine.(kv.Hosted)
	return h
}

// keptInFile returns the error of a command that concerns a file if a server keeps the store: it says what to type instead.
func (r *run) keptInFile(of kv.Care) error {
	if on := r.onServer(); on != nil {
		return usagef("%s", on.Instead(of))
	}
	return nil
}

func grantCommand() *command {
	return &command{name: "grant", does: "say what a user of the database may do with a store on a server: owner, writer, reader or none", scope: onStore, run: in(doGrant),
		more: `The server itself holds users to it, whatever program they use: a reader reads, a writer also changes records, an owner may also change and drop the tables, and grant. USER has to be a role of the
database already (create role USER login). Only the store's owner can grant, and needs the right to make roles (createrole).`,
		json: "role, user", example: "chatctx grant writer ann"}
}

type grantIn struct {
	Role kv.Role `arg:"ROLE"`
	User string  `arg:"USER"`
}

func doGrant(r *run, in *grantIn) error {
	switch in.Role {
	case kv.RoleOwner, kv.RoleWriter, kv.RoleReader, kv.RoleNone:
	default:
		return usagef("grant knows no role %q: use owner, writer, reader or none", in.Role)
	}
	st, err := r.reader()
	if err != nil {
		return err
	}
	g, is := base.Of(st).Engine.(kv.Granter)
	if !is {
		return usagef("grant is for stores on a server; who may use a file is the file's own mode")
	}
	if err := g.Grant(r.ctx, in.Role, in.User); errors.Is(err, fs.ErrNotExist) {
		return &chatctx.RefError{Kind: "user of the database", Ref: in.User}
	} else if err != nil {
		return err
	}
	return r.emit(map[string]any{"role": in.Role, "user": in.User}, func() {
		r.printf("%s is %s of %s\n", clean(in.User), map[bool]string{true: "no user", false: string(in.Role)}[in.Role == kv.RoleNone], clean(r.storeName()))
	})
}

// storeName returns the store's name as others may see it.
func (r *run) storeName() string {
	path, _ := r.storePath()
	return shownStore(path)
}
