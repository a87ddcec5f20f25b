package chatctx_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/pool"
)

// names are the values that doors of branches and tags are asked for. imported: what a file may say, though a person may not.
var (
	nameChecks = []check{{"some", "Ünder \"q\" \U0001f680", ""}, {"longest", strings.Repeat("x", 255), ""}, {"empty", "", usage}, {"too long", strings.Repeat("x", 256), usage},
		{"two lines", "a\nb", usage}, {"escape", "a\x1b[31mb", usage}, {"NUL", "a\x00b", usage}, {"C1", "a\u0085b", usage}, {"not UTF-8", cutText, usage}, {"a folder", ".", usage},
		{"the folder above", "..", usage}, {"dash", "-a", usage}, {"a place", "a@2", usage}, {"a range", "a..b", usage}, {"a turn", "u3", usage}, {"space", " a", usage},
		{"space after", "a\u00a0", usage}, {"only space", " ", usage}, {"a kind", "tag:a", usage}, {"an id", "a1b2c3", usage}}
	importedNames = map[string]string{"a folder": "branch-.", "the folder above": "branch-", "dash": "-a", "a place": "a@2", "a range": "a..b", "a turn": "u3", "space": " a",
		"space after": "a\u00a0", "only space": " ", "a kind": "tag:a", "an id": "a1b2c3"}
)

// branched is a door of a branch's name.
func branched(name string, fn func(*place, string) error) door {
	return door{name: name, put: func(p *place, v string) (string, error) {
		if err := fn(p, v); err != nil {
			return "", err
		}
		all, err := p.c.Branches(p.t.Context())
		if err != nil {
			return "", err
		}
		for _, b := range all {
			if b.Name != "main" {
				return b.Name, nil
			}
		}
		return "main", nil
	}}
}

// branchedBy is a door of a branch's name that is a command after those that make a conversation with one message.
func branchedBy(name string, args func(v string) []string) door {
	return door{name: name, put: func(p *place, v string) (string, error) {
		var out struct{ Branch string }
		err := p.commands(&out, []string{"new", "before"}, []string{"add", "user", "hello"}, args(v), []string{"show"})
		return out.Branch, err
	}}
}

// numbered: an empty name is that of the next free one.
var numbered = map[string]string{"empty": "main.2"}

// incomingBranch imports a conversation with one more branch by the library.
func (p *place) incomingBranch(name string) error {
	return p.incoming(&record.Incoming{Nodes: []record.Node{{ID: "1", Message: user("hello")}, {ID: "2", Parent: 1, Message: user("more")}},
		Branches: []record.IncomingBranch{{Leaf: 1}, {Name: name, Leaf: 2}}})
}

var branchNames = &thing{
	name: "branch name", member: "name",
	takes: func(_, leaf string, typ reflect.Type) bool {
		return isText(typ) && leaf == "to" || slices.Contains([]reflect.Type{reflect.TypeFor[chatctx.ForkOptions](), reflect.TypeFor[record.EditOptions](),
			reflect.TypeFor[record.IncomingBranch](), reflect.TypeFor[record.NativeBranch]()}, typ)
	},
	checks: nameChecks,
	doors: []door{
		branched("Batch.Fork", func(p *place, v string) error {
			return p.batch(func(b *chatctx.Batch) { b.Fork(v, chatctx.ForkOptions{}) })
		}),
		branched("Batch.ForkForReply", func(p *place, v string) error {
			return p.batch(func(b *chatctx.Batch) { b.ForkForReply(v, chatctx.ForkOptions{}) })
		}),
		branched("Batch.RenameBranch", func(p *place, v string) error { return p.batch(func(b *chatctx.Batch) { b.RenameBranch("main", v) }) }),
		branched("Batch.Edit", func(p *place, v string) error {
			return p.batch(func(b *chatctx.Batch) { b.Edit("@1", "other", record.EditOptions{Name: v}) })
		}).but(numbered),
		branched("Store.Import", (*place).incomingBranch).but(importedNames),
		branched("NativeImport.Branch", func(p *place, v string) error {
			return p.nativeWith(record.Native{}, record.NativeBranch{}, func(in *intake.NativeImport) error {
				return in.Branch(p.t.Context(), record.NativeBranch{ID: pool.NewID(), Name: v})
			})
		}).but(importedNames),
		branched("branches.fork", func(p *place, v string) error { return p.post("branches/main/fork", `{"name":`+quoted(v)+`}`, nil) }),
		branched("branches.rename", func(p *place, v string) error { return p.post("branches/main/rename", `{"name":`+quoted(v)+`}`, nil) }),
		branched("branches.edit", func(p *place, v string) error {
			return p.post("branches/main/edit", `{"message":"@1","text":"other","name":`+quoted(v)+`}`, nil)
		}).but(numbered),
		branched("retry", (*place).retried).but(map[string]string{"empty": "main"}), // without a name the question is answered on its branch
		branched("a native file", func(p *place, v string) error {
			more := fmt.Sprintf("\n"+`{"branch":{"id":"%s","name":%s,"created_at":"2026-01-01T00:00:00Z"}}`, pool.NewID(), quoted(v))
			return p.file(strings.Replace(native(`,"title":"t"`, "", nativeMessage("hello")+more), `"branches":1`, `"branches":2`, 1))
		}).mending().but(importedNames),
		branchedBy("chatctx fork", func(v string) []string { return []string{"fork", "--", v} }),
		branchedBy("chatctx branch mv", func(v string) []string { return []string{"branch", "mv", "--", "main", v} }),
		branchedBy("chatctx edit --as", func(v string) []string { return []string{"edit", "@1", "other", "--as", v} }),
	},
	beside: map[string]string{"ImportRun.Import": "it is Store.Import", "ImportRun.Ready": "it is the first half of Import"},
}

// retried asks a provider again, on a branch of that name. A provider is asked only if the name can be one.
func (p *place) retried(name string) error {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if branchstore.CheckNewName(name) != nil && name != "" {
			p.t.Errorf("the provider was asked")
		}
		fmt.Fprint(w, `{"model":"m","choices":[{"message":{"role":"assistant","content":"an answer"},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	err := p.batch(func(b *chatctx.Batch) {
		b.SetSettings(map[string]json.RawMessage{"provider": json.RawMessage(`"openai"`), "model": json.RawMessage(`"m"`), "base_url": json.RawMessage(quoted(server.URL))})
	})
	if err != nil {
		return err
	}
	return p.post("branches/main/retry", `{"name":`+quoted(name)+`}`, nil)
}

// tagged is a door of a tag.
func tagged(name string, fn func(*place, string) error) door {
	return door{name: name, put: func(p *place, v string) (string, error) {
		if err := fn(p, v); err != nil {
			return "", err
		}
		tags, err := p.c.Tags(p.t.Context())
		for tag := range tags {
			return tag, err
		}
		return "", err
	}}
}

// nativeRef is a message of a file of the store's own format, and one line that names it.
func nativeRef(line string) string {
	id := pool.NewID()
	return fmt.Sprintf(`{"message":{"id":"%[1]s","role":"user","content":[{"type":"text","text":"hello"}],"created_at":"2026-01-01T00:00:00Z"}}`+"\n"+line, id)
}

// nativeNamed imports a conversation with one message by the library, of which name says something.
func (p *place) nativeNamed(name func(*intake.NativeImport, chatctx.ID) error) error {
	return p.nativeWith(record.Native{}, record.NativeBranch{}, func(in *intake.NativeImport) error {
		m := user("hello")
		m.ID = pool.NewID()
		if err := in.Append(p.t.Context(), []*chatctx.Message{m}, nil); err != nil {
			return err
		}
		return name(in, m.ID)
	})
}

var tags = &thing{
	name: "tag", member: "tag",
	takes: func(method, leaf string, typ reflect.Type) bool {
		return isText(typ) && leaf == "name" && strings.HasSuffix(method, "ag") || typ == reflect.TypeFor[map[string]int]() && leaf == "Tags"
	},
	checks: nameChecks,
	doors: []door{
		tagged("Batch.Tag", func(p *place, v string) error { return p.batch(func(b *chatctx.Batch) { b.Tag(v, "@1") }) }),
		tagged("Store.Import", func(p *place, v string) error { return p.incoming(&record.Incoming{Tags: map[string]int{v: 1}}) }).but(importedNames),
		tagged("NativeImport.Tag", func(p *place, v string) error {
			return p.nativeNamed(func(in *intake.NativeImport, id chatctx.ID) error { return in.Tag(v, id) })
		}).but(importedNames),
		tagged("tags.set", func(p *place, v string) error {
			return p.post("branches/main/tags", `{"message":"@1","tag":`+quoted(v)+`}`, nil)
		}),
		tagged("a native file", func(p *place, v string) error {
			return p.file(native(`,"title":"t"`, "", nativeRef(`{"tag":{"name":`+strings.ReplaceAll(quoted(v), "%", "%%")+`,"message":"%[1]s"}}`)))
		}).mending().but(importedNames),
		{name: "chatctx tag", put: func(p *place, v string) (string, error) {
			var out struct{ Tag string }
			err := p.commands(&out, []string{"new", "before"}, []string{"add", "user", "hello"}, []string{"tag", "--", v, "@1"}, []string{"tag", "ls"})
			return out.Tag, err
		}},
	},
	beside: map[string]string{"Batch.Untag": "it takes one off", "ImportRun.Import": "it is Store.Import", "ImportRun.Ready": "it is the first half of Import"},
}

// markedBy is a door of a mark.
func markedBy(name string, fn func(*place, string) error) door {
	return door{name: name, put: func(p *place, v string) (string, error) {
		if err := fn(p, v); err != nil {
			return "", err
		}
		marks, err := p.c.Marks(p.t.Context())
		for _, mark := range marks {
			return mark, err
		}
		return "", err
	}}
}

var marks = &thing{
	name: "mark", member: "mark",
	takes: func(_, leaf string, typ reflect.Type) bool { return isText(typ) && leaf == "mark" },
	checks: []check{{"pinned", "pinned", ""}, {"excluded", "excluded", ""}, {"none", "", ""}, {"another word", "star", usage}, {"another case", "Pinned", usage}, {"space", "pinned ", usage},
		{"hidden", "hidden", usage}, {"long", strings.Repeat("x", 1024), usage}, {"not UTF-8", cutText, usage}, {"NUL", "\x00", usage}},
	doors: []door{
		markedBy("Batch.Mark", func(p *place, v string) error { return p.batch(func(b *chatctx.Batch) { b.Mark("@1", v) }) }),
		markedBy("NativeImport.Mark", func(p *place, v string) error {
			return p.nativeNamed(func(in *intake.NativeImport, id chatctx.ID) error { return in.Mark(id, v) })
		}),
		markedBy("marks.set", func(p *place, v string) error {
			return p.post("branches/main/marks", `{"messages":["@1"],"mark":`+quoted(v)+`}`, nil)
		}),
		markedBy("a native file", func(p *place, v string) error {
			return p.file(native(`,"title":"t"`, "", nativeRef(`{"mark":{"mark":`+strings.ReplaceAll(quoted(v), "%", "%%")+`,"message":"%[1]s"}}`)))
		}).mending(),
	},
}
