package cli

import (
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	_ "github.com/chatctx/chatctx/chatctx/kv/pgkv" // opens postgres://
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/chatctx/chatctx/internal/operation"
)

func init() { lookGroups = append(lookGroups, serverLooks) }

func serverLooks() map[string]look {
	return map[string]look{
		"store.init": preparing(func(r *run, _ *struct{}) error {
			_, err := r.reader()
			if err == nil {
				return fmt.Errorf("a store %w: %s", errExists, r.storeName())
			}
			if errors.Is(err, chatctx.ErrNotExist) {
				return nil
			}
			return err
		}, as(func(r *run, _ *struct{}, v operation.Made) {
			r.printf("made the store %s\n", clean(v.Store))
			if r.onServer() != nil {
				r.note("let others in: %s", r.onStore("grant writer USER"))
			}
		})),
		"store.grant": as(func(r *run, _ *operation.Grant, v operation.Grant) {
			r.printf("%s is %s of %s\n", clean(v.User), map[bool]string{true: "no user", false: string(v.Role)}[v.Role == engine.RoleNone], clean(r.storeName()))
		}),
	}
}

// isURL reports whether a store is named by a URL and not by a file.
func isURL(path string) bool { return kv.Scheme(path) != "" }

// shownStore returns a store's name as others may see it.
func shownStore(path string) string {
	if isURL(path) {
		return engine.Shown(path)
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
func (r *run) onServer() engine.Hosted {
	if r.st == nil {
		return nil
	}
	h, _ := base.Of(r.st).Engine.(engine.Hosted)
	return h
}

// storeName returns the store's name as others may see it.
func (r *run) storeName() string {
	path, _ := r.storePath()
	return shownStore(path)
}
