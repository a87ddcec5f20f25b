package serve

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
)

// purgedFile is a conversation that was imported; grown: with one message more.
func purgedFile(grown bool) string {
	texts := []string{"my secret is ZZ4411", "noted", "next"}
	if grown {
		texts = append(texts, "end")
	}
	var out strings.Builder
	for i, text := range texts {
		parent := "null"
		if i > 0 {
			parent = fmt.Sprintf(`"n%d"`, i)
		}
		role := []string{"user", "assistant"}[i%2]
		fmt.Fprintf(&out, `{"parentUuid":%s,"sessionId":"s1","type":%q,"uuid":"n%d","timestamp":"2026-01-01T10:00:0%dZ","message":{"role":%q,"content":%q}}`+"\n", parent, role, i+1, i, role, text)
	}
	return out.String()
}

// TestUploadsBringNothingBack: an import of an upload over HTTP and over standard input brings nothing back that was purged or redacted here, nor takes anything out of
// the trash without news, and says so; with purged it brings what was purged.
func TestUploadsBringNothingBack(t *testing.T) {
	ctx := t.Context()
	for what, c := range map[string]struct {
		erase    func(s *chatctx.Store, id string) error
		texts    string // with a grown file
		warning  string
		trashed  bool // what is in no list comes back with news
		returned bool // the secret, by purged
	}{
		"message": {func(s *chatctx.Store, id string) error {
			_, err := s.Maintenance().PurgeMessages(ctx, id, "", []record.Ref{"@1"}, chatctx.PurgeOptions{})
			return err
		}, "noted|next|end", "purged here", false, true},
		"conversation": {func(s *chatctx.Store, id string) error {
			_, err := s.Maintenance().PurgeContext(ctx, id, chatctx.PurgeOptions{})
			return err
		}, "", "purged here", false, true},
		"redacted": {func(s *chatctx.Store, id string) error {
			_, err := s.Maintenance().Redact(ctx, record.RedactOptions{Find: func(text string) (out []record.Secret, err error) {
				if at := strings.Index(text, "ZZ4411"); at >= 0 {
					out = append(out, record.Secret{From: at, To: at + 6, What: "zz"})
				}
				return out, nil
			}})
			return err
		}, "my secret is [redacted]|noted|next|end", "redacted here", false, false},
		"trash": {func(s *chatctx.Store, id string) error { _, err := s.Trash(ctx, id); return err }, "my secret is ZZ4411|noted|next|end", "trash", true, false},
	} {
		for _, over := range []string{"http", "stdio"} {
			t.Run(what+"/"+over, func(t *testing.T) {
				a := start(t, Options{})
				u := &uploader{api: a}
				if over == "stdio" {
					u.child = a.stdio()
					u.child.call("initialize", nil)
				}
				u.imports(purgedFile(false), object{})
				id := at(a.get("/contexts"), "items", 0, "context").(string)
				if err := c.erase(a.store, id); err != nil {
					t.Fatal(err)
				}
				said := func() string { return strings.Join(u.texts(), "|") }
				before := said()
				rep := u.imports(purgedFile(false), object{})
				if said() != before || c.warning != "trash" && !strings.Contains(fmt.Sprint(rep["warnings"]), c.warning) {
					t.Errorf("the same file again: %q, was %q; it says %v", said(), before, rep)
				}
				rep = u.imports(purgedFile(true), object{})
				if said() != c.texts || !strings.Contains(fmt.Sprint(rep), c.warning) {
					t.Errorf("the file that has grown: %q, want %q; it says %v", said(), c.texts, rep)
				}
				rep = u.imports(purgedFile(true), object{"purged": true})
				if back := strings.Contains(said(), "ZZ4411"); back != (c.returned || c.trashed) || c.returned && !strings.Contains(fmt.Sprint(rep["warnings"]), "again what was purged") {
					t.Errorf("with purged: %q; it says %v", said(), rep)
				}
			})
		}
	}
}

// uploader imports files over HTTP, or over standard input.
type uploader struct {
	*api
	child *child
}

// imports uploads a file and imports it.
func (u *uploader) imports(file string, params object) object {
	if u.child != nil {
		part := u.child.call("uploads.add", object{"name": "s1.jsonl", "data": base64.StdEncoding.EncodeToString([]byte(file))})
		params["uploads"] = []any{part["upload"]}
		return u.child.call("import", params)
	}
	part := u.do(200, "POST", "/uploads?name=s1.jsonl", []byte(file))
	params["uploads"] = []any{part["upload"]}
	all := u.stream("/import", params)
	if last := all[len(all)-1]; last.name != "done" {
		u.t.Fatalf("the import ends with %v", last)
	}
	return all[len(all)-1].data
}

// texts are those of all messages of conversations that are not in the trash.
func (u *uploader) texts() (out []string) {
	for info, err := range u.store.Contexts(u.t.Context(), record.ListOptions{}) {
		if err != nil {
			u.t.Fatal(err)
		}
		c, err := u.store.Context(u.t.Context(), info.ID.String())
		if err != nil {
			u.t.Fatal(err)
		}
		branches, err := c.Branches(u.t.Context())
		if err != nil {
			u.t.Fatal(err)
		}
		for _, b := range branches {
			snap, err := c.Snapshot(u.t.Context(), b.Name)
			if err != nil {
				u.t.Fatal(err)
			}
			for e, err := range snap.Entries(u.t.Context(), 1, 0) {
				if err != nil {
					u.t.Fatal(err)
				}
				if text := e.Text(); !slices.Contains(out, text) {
					out = append(out, text)
				}
			}
		}
	}
	return out
}
