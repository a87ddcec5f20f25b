package chatctx_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/pool"
)

const (
	cutText = "Stra\xc3" // it ends in the middle of a character
	usage   = "usage"
)

// things has all that the doors of a store are asked to keep.
var things = []*thing{titles, labels, settingsOf, messages, prompts, rules, branchNames, tags, marks}

func isText(typ reflect.Type) bool { return typ.Kind() == reflect.String }

// titled is a door of a title: fn gives it to a conversation, which becomes the place's.
func titled(name string, fn func(*place, string) error) door {
	return door{name: name, put: func(p *place, v string) (string, error) {
		if err := fn(p, v); err != nil {
			return "", err
		}
		return p.info().Title, nil
	}}
}

func (d door) but(other map[string]string) door {
	d.other = other
	return d
}

func (d door) mending() door {
	d.mends = true
	return d
}

type madeContext struct {
	Context string
	Title   string
}

func (p *place) postMade(path, body string) error {
	var out madeContext
	if err := p.post(path, body, &out); err != nil {
		return err
	}
	return p.turnTo(out.Context)
}

var titles = &thing{
	name: "title", member: "title",
	takes: func(_, leaf string, typ reflect.Type) bool { return isText(typ) && strings.EqualFold(leaf, "title") },
	checks: []check{{"some", "Ünder \"quotes\" \U0001f680", ""}, {"longest", strings.Repeat("x", 1024), ""}, {"empty", "", ""}, {"too long", strings.Repeat("x", 1025), usage},
		{"two lines", "a\nb", usage}, {"escape", "a\x1b[31mb", usage}, {"NUL", "a\x00b", usage}, {"C1", "a\u0085b", usage}, {"not UTF-8", cutText, usage}},
	doors: []door{
		titled("Batch.SetTitle", func(p *place, v string) error { return p.batch(func(b *chatctx.Batch) { b.SetTitle(v) }) }),
		titled("Store.New", func(p *place, v string) error {
			return p.made(p.store.New(p.t.Context(), record.NewContext{Title: v}))
		}),
		titled("Store.Copy", func(p *place, v string) error { return p.made(p.store.Copy(p.t.Context(), p.c.ID.String(), v, false)) }).but(
			map[string]string{"empty": "before"}),
		titled("Store.CopyBranch", func(p *place, v string) error {
			return p.made(p.store.CopyBranch(p.t.Context(), p.c.ID.String(), "main", v, false))
		}).but(
			map[string]string{"empty": "before"}),
		titled("Store.Import", func(p *place, v string) error { return p.incoming(&record.Incoming{Title: v}) }).but(map[string]string{"empty": "hello"}),
		titled("ImportRun.Native", func(p *place, v string) error { return p.native(record.Native{Title: v}) }),
		titled("ChatContext.StartTask", func(p *place, v string) error {
			return p.made(p.c.StartTask(p.t.Context(), "", record.NewTask{NewContext: record.NewContext{Title: v}, Task: record.Task{Goal: "g"}}))
		}),
		titled("Titles.Give", func(p *place, v string) error {
			if err := p.made(p.store.New(p.t.Context(), record.NewContext{})); err != nil {
				return err
			}
			_, err := journal.NewTitles(base.Of(p.store)).Give(p.t.Context(), p.c.ID.String(), v, nil)
			return err
		}).but(map[string]string{"empty": "!" + usage}),
		titled("contexts.new", func(p *place, v string) error { return p.postMade("/contexts", `{"title":`+quoted(v)+`}`) }),
		titled("contexts.copy", func(p *place, v string) error { return p.postMade("copy", `{"title":`+quoted(v)+`}`) }).but(map[string]string{"empty": "before"}),
		titled("contexts.rename", func(p *place, v string) error { return p.post("rename", `{"title":`+quoted(v)+`}`, nil) }).but(
			map[string]string{"empty": "!" + usage}),
		titled("tasks.start", func(p *place, v string) error {
			return p.postMade("branches/main/tasks", `{"goal":"g","title":`+quoted(v)+`}`)
		}).but(map[string]string{"empty": "g"}),
		titled("a native file", func(p *place, v string) error {
			return p.file(native(`,"title":`+quoted(v), "", nativeMessage("hello")))
		}).mending(),
		titled("a file of another", func(p *place, v string) error { return p.file(chatGPT(v, "hello")) }).mending().but(
			map[string]string{"empty": "hello", "longest": strings.Repeat("x", 1000)}),
		{name: "chatctx rename", put: func(p *place, v string) (string, error) {
			var out madeContext
			err := p.commands(&out, []string{"new", "before"}, []string{"rename", "before", v}, []string{"show"})
			return out.Title, err
		}, other: map[string]string{"empty": "!" + usage}},
		{name: "chatctx new", put: func(p *place, v string) (string, error) {
			var out madeContext
			err := p.commands(&out, []string{"new", v}, []string{"show"})
			return out.Title, err
		}, other: map[string]string{"empty": "!" + usage}},
		{name: "chatctx new --from", put: func(p *place, v string) (string, error) {
			var out madeContext
			err := p.commands(&out, []string{"new", "before"}, []string{"new", "--from", "before", v}, []string{"show"})
			return out.Title, err
		}, other: map[string]string{"empty": "!" + usage}},
	},
	beside: map[string]string{"ImportRun.Import": "it is Store.Import", "ImportRun.Ready": "it is the first half of Import", "Store.Contexts": "it chooses by titles"},
}

// native imports a conversation of the store's own format by the library.
func (p *place) native(n record.Native) error { return p.nativeWith(n, record.NativeBranch{}, nil) }

// nativeWith is native with a branch, and what comes on it.
func (p *place) nativeWith(n record.Native, b record.NativeBranch, more func(*intake.NativeImport) error) error {
	n.ID, n.Active, b.ID, b.Name = pool.NewID(), "main", pool.NewID(), "main"
	in, err := intake.NewImportRun(base.Of(p.store), care.RemoveContext).Native(p.t.Context(), n)
	if err != nil {
		return err
	}
	if err = in.Branch(p.t.Context(), b); err == nil && more != nil {
		err = more(in)
	}
	if err == nil {
		_, err = in.Finish(p.t.Context())
	}
	if err != nil {
		return errors.Join(err, in.Drop(p.t.Context()))
	}
	return p.turnTo(n.ID.String())
}

// labelled is a door of a label.
func labelled(name string, fn func(*place, string) error) door {
	return door{name: name, put: func(p *place, v string) (string, error) {
		if err := fn(p, v); err != nil {
			return "", err
		}
		return strings.Join(p.info().Labels, "|"), nil
	}}
}

// reachable: imported names that no address reaches get another one.
var reachable = map[string]string{"a folder": "branch-.", "the folder above": "branch-"}

var labels = &thing{
	name: "label", member: "label",
	takes: func(_, leaf string, typ reflect.Type) bool {
		return isText(typ) && leaf == "label" || typ == reflect.TypeFor[[]string]() && leaf == "Labels"
	},
	checks: []check{{"some", "Ünder / \"q\"", ""}, {"longest", strings.Repeat("x", 200), ""}, {"empty", "", usage}, {"too long", strings.Repeat("x", 201), usage},
		{"two lines", "a\nb", usage}, {"escape", "a\x1b[31mb", usage}, {"NUL", "a\x00b", usage}, {"C1", "a\u0085b", usage}, {"not UTF-8", cutText, usage},
		{"a folder", ".", usage}, {"the folder above", "..", usage}, {"dash", "-a", usage}, {"space", " a", usage}, {"space after", "a\u00a0", usage}, {"only space", " ", usage}},
	doors: []door{
		labelled("Batch.Label", func(p *place, v string) error { return p.batch(func(b *chatctx.Batch) { b.Label(v) }) }),
		labelled("Store.Import", func(p *place, v string) error { return p.incoming(&record.Incoming{Labels: []string{v, v}}) }).but(reachable),
		labelled("ImportRun.Native", func(p *place, v string) error { return p.native(record.Native{Labels: []string{v, v}}) }).but(reachable),
		labelled("labels.add", func(p *place, v string) error { return p.post("labels", `{"label":`+quoted(v)+`}`, nil) }),
		labelled("a native file", func(p *place, v string) error {
			return p.file(native(`,"title":"t","labels":[`+quoted(v)+`]`, "", nativeMessage("hello")))
		}).mending(),
		{name: "chatctx label add", put: func(p *place, v string) (string, error) {
			var out struct{ Label string }
			err := p.commands(&out, []string{"new", "before"}, []string{"label", "add", "--", v, "before"}, []string{"label", "ls"})
			return out.Label, err
		}},
	},
	beside: map[string]string{
		"Batch.Unlabel": "it takes one off", "Store.Contexts": "it chooses by labels", "Store.Search": "it chooses by labels",
		"ImportRun.Import": "it is Store.Import", "ImportRun.Ready": "it is the first half of Import",
	},
}

var settingsType = reflect.TypeFor[map[string]json.RawMessage]()

// configured is a door of settings: the value is a name, =, and JSON.
func configured(name string, fn func(*place, map[string]json.RawMessage) error, kept func(*place) map[string]json.RawMessage) door {
	return door{name: name, put: func(p *place, v string) (string, error) {
		key, value, _ := strings.Cut(v, "=")
		if err := fn(p, map[string]json.RawMessage{key: json.RawMessage(value)}); err != nil {
			return "", err
		}
		for k, got := range kept(p) {
			return k + "=" + string(got), nil
		}
		return "", nil
	}}
}

// configuredBy is the command as a door of settings.
func configuredBy(name string, flags ...string) door {
	return door{name: name, put: func(p *place, v string) (string, error) {
		var out struct{ Settings map[string]json.RawMessage }
		err := p.commands(&out, []string{"new", "before"}, slices.Concat([]string{"config"}, flags, []string{"--", v}), append([]string{"config"}, flags...))
		for k, got := range out.Settings {
			return k + "=" + string(got), err
		}
		return "", err
	}}
}

// typed: a value that a person types is a string if it is no JSON, and an empty one removes the setting.
var typed = map[string]string{"empty value": "", "no JSON": `app.k="{"`}

func ofContext(p *place) map[string]json.RawMessage { return p.info().Settings }

func ofBranch(p *place) map[string]json.RawMessage {
	b, err := p.c.Branch(p.t.Context(), "")
	if err != nil {
		p.t.Fatal(err)
	}
	return b.Settings
}

func ofStore(p *place) map[string]json.RawMessage {
	set, err := p.store.Settings(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return set
}

// clearStore removes the defaults of the store.
func (p *place) clearStore() error {
	for k := range ofStore(p) {
		if _, err := p.store.SetSettings(p.t.Context(), map[string]json.RawMessage{k: json.RawMessage("null")}); err != nil {
			return err
		}
	}
	return nil
}

// object is settings as a member of JSON.
func object(set map[string]json.RawMessage) string {
	for k, v := range set {
		return `{` + quoted(k) + `:` + string(v) + `}`
	}
	return "{}"
}

// heldWhenImported: settings that could send a conversation elsewhere, and those that no table has, come in, and are not in force.
var heldWhenImported = map[string]string{"app": `held.app.k={"a":[1,null]}`, "unknown": `held.modle="x"`, "another type": "held.temperature=[1]", "another value": "held.temperature=-1"}

var settingsOf = &thing{
	name: "setting", member: "settings",
	takes: func(_, leaf string, typ reflect.Type) bool {
		return typ == settingsType && (leaf == "set" || leaf == "Settings")
	},
	checks: []check{{"some", `model="Ünder"`, ""}, {"number", "temperature=0.5", ""}, {"app", `app.k={"a":[1,null]}`, ""}, {"unknown", `modle="x"`, usage}, {"empty name", `="x"`, usage},
		{"empty value", "model=", usage}, {"no JSON", "app.k={", usage}, {"another type", "temperature=[1]", usage}, {"another value", "temperature=-1", usage},
		{"not UTF-8", `model="` + cutText + `"`, usage}, {"name not UTF-8", "app." + cutText + "=1", usage}},
	doors: []door{
		configured("Batch.SetSettings", func(p *place, set map[string]json.RawMessage) error {
			return p.batch(func(b *chatctx.Batch) { b.SetSettings(set) })
		}, ofBranch),
		configured("Batch.SetContextSettings", func(p *place, set map[string]json.RawMessage) error {
			return p.batch(func(b *chatctx.Batch) { b.SetContextSettings(set) })
		}, ofContext),
		configured("Store.SetSettings", func(p *place, set map[string]json.RawMessage) error {
			if err := p.clearStore(); err != nil {
				return err
			}
			_, err := p.store.SetSettings(p.t.Context(), set)
			return err
		}, ofStore),
		configured("Store.New", func(p *place, set map[string]json.RawMessage) error {
			return p.made(p.store.New(p.t.Context(), record.NewContext{Settings: set}))
		}, ofContext),
		configured("Store.Import", func(p *place, set map[string]json.RawMessage) error {
			return p.incoming(&record.Incoming{Settings: set})
		}, ofContext).but(heldWhenImported),
		configured("Store.Import of a branch", func(p *place, set map[string]json.RawMessage) error {
			return p.incoming(&record.Incoming{Nodes: []record.Node{{ID: "1", Message: pool.NewText(pool.User, "hello")}}, Branches: []record.IncomingBranch{{Leaf: 1, Settings: set}}})
		}, ofBranch).but(heldWhenImported),
		configured("NativeImport.Branch", func(p *place, set map[string]json.RawMessage) error {
			return p.nativeWith(record.Native{}, record.NativeBranch{Settings: set}, nil)
		}, ofBranch).but(heldWhenImported),
		configured("settings.setStore", func(p *place, set map[string]json.RawMessage) error {
			if err := p.clearStore(); err != nil {
				return err
			}
			return p.post("/settings", `{"settings":`+object(set)+`}`, nil)
		}, ofStore),
		configured("ImportRun.Native", func(p *place, set map[string]json.RawMessage) error { return p.native(record.Native{Settings: set}) }, ofContext).but(heldWhenImported),
		configured("ChatContext.StartTask", func(p *place, set map[string]json.RawMessage) error {
			return p.made(p.c.StartTask(p.t.Context(), "", record.NewTask{NewContext: record.NewContext{Settings: set}, Task: record.Task{Goal: "g"}}))
		}, ofContext),
		configured("contexts.new", func(p *place, set map[string]json.RawMessage) error {
			return p.postMade("/contexts", `{"settings":`+object(set)+`}`)
		}, ofContext),
		configured("settings.setContext", func(p *place, set map[string]json.RawMessage) error {
			return p.post("settings", `{"settings":`+object(set)+`}`, nil)
		}, ofContext),
		configured("settings.setBranch", func(p *place, set map[string]json.RawMessage) error {
			return p.post("branches/main/settings", `{"settings":`+object(set)+`}`, nil)
		}, ofBranch),
		configuredBy("chatctx config").but(typed),
		configuredBy("chatctx config --all", "--all").but(typed),
		configuredBy("chatctx config --default", "--default").but(typed),
		configured("a native file", func(p *place, set map[string]json.RawMessage) error {
			return p.file(native(`,"title":"t","settings":`+object(set), "", nativeMessage("hello")))
		}, ofContext).mending().but(heldWhenImported),
		configured("a native file's branch", func(p *place, set map[string]json.RawMessage) error {
			return p.file(native(`,"title":"t"`, `,"settings":`+object(set), nativeMessage("hello")))
		}, ofBranch).mending().but(heldWhenImported),
	},
	beside: map[string]string{
		"ImportRun.Import": "it is Store.Import", "ImportRun.Ready": "it is the first half of Import", "ImportRun.Hold": "it holds whatever a file has for the whole store",
		"Store.Contexts": "it chooses by a setting", "send": "they are of one request", "retry": "they are of one request",
	},
}

// said is a door of a message's text.
func said(name string, fn func(p *place, text string) error) door {
	return door{name: name, put: func(p *place, v string) (string, error) {
		if err := fn(p, v); err != nil {
			return "", err
		}
		return p.last(), nil
	}}
}

// loose is a door of a message that is on no branch.
func loose(name string, fn func(*place, *chatctx.Message) error) door {
	return door{name: name, put: func(p *place, v string) (string, error) {
		m := user(v)
		m.ID = pool.NewID()
		if err := fn(p, m); err != nil {
			return "", err
		}
		kept, err := p.c.Message(p.t.Context(), m.ID)
		if err != nil {
			return "", err
		}
		return kept.Text(), nil
	}}
}

// ending ends a reply.
func (p *place) ending(e chatctx.Ending) error {
	begun, err := p.c.BeginReply(p.t.Context(), "", chatctx.AppendOptions{})
	if err != nil {
		return err
	}
	_, err = begun.Reply.Finish(p.t.Context(), e)
	return err
}

// last is the text of the branch's last message.
func (p *place) last() string {
	snap, err := p.c.Snapshot(p.t.Context(), "")
	if err != nil {
		p.t.Fatal(err)
	}
	tail, err := snap.Page(p.t.Context(), snap.Len(), snap.Len())
	if err != nil || len(tail) != 1 {
		p.t.Fatal(tail, err)
	}
	return tail[0].Message.Text()
}

func user(text string) *chatctx.Message { return pool.NewText(pool.User, text) }

func apiMessage(v string) string { return `{"messages":[{"role":"user","content":` + quoted(v) + `}]}` }

var messageType = reflect.TypeFor[chatctx.Message]()

var messages = &thing{
	name: "message", member: "messages",
	takes: func(_, _ string, typ reflect.Type) bool { return typ == messageType },
	checks: []check{{"some", "Ünder \"quotes\" \U0001f680", ""}, {"two lines", "a\nb\r\n", ""}, {"escape", "a\x1b[31mb", ""}, {"NUL", "a\x00b", ""}, {"a character for none", "a\ufffdb", ""},
		{"space", " ", ""}, {"not UTF-8", cutText, usage}},
	doors: []door{
		said("Batch.Append", func(p *place, v string) error { return p.batch(func(b *chatctx.Batch) { b.Append(user(v)) }) }),
		said("Batch.AppendWith", func(p *place, v string) error {
			return p.batch(func(b *chatctx.Batch) { b.AppendWith(chatctx.AppendOptions{Key: "k"}, user(v)) })
		}),
		said("Batch.Insert", func(p *place, v string) error {
			return p.batch(func(b *chatctx.Batch) { b.Insert("@1", user(v)); b.Drop("@2") })
		}),
		said("ChatContext.Append", func(p *place, v string) error { _, err := p.c.Append(p.t.Context(), "", user(v)); return err }),
		said("ChatContext.BeginReply", func(p *place, v string) error {
			_, err := p.c.BeginReply(p.t.Context(), "", chatctx.AppendOptions{}, user(v))
			return err
		}),
		said("Store.New", func(p *place, v string) error {
			return p.made(p.store.New(p.t.Context(), record.NewContext{Messages: []*chatctx.Message{user(v)}}))
		}),
		said("ChatContext.StartTask", func(p *place, v string) error {
			return p.made(p.c.StartTask(p.t.Context(), "", record.NewTask{NewContext: record.NewContext{Messages: []*chatctx.Message{user(v)}}, Task: record.Task{Goal: "g"}}))
		}),
		said("Store.Import", func(p *place, v string) error {
			return p.incoming(&record.Incoming{Nodes: []record.Node{{ID: "1", Message: user(v)}}, Branches: []record.IncomingBranch{{Leaf: 1}}})
		}),
		said("NativeImport.Append", func(p *place, v string) error {
			return p.nativeWith(record.Native{}, record.NativeBranch{}, func(in *intake.NativeImport) error {
				m := user(v)
				m.ID = pool.NewID()
				return in.Append(p.t.Context(), []*chatctx.Message{m}, nil)
			})
		}),
		loose("NativeImport.Loose", func(p *place, m *chatctx.Message) error {
			return p.nativeWith(record.Native{}, record.NativeBranch{}, func(in *intake.NativeImport) error { return in.Loose(p.t.Context(), m, nil) })
		}),
		loose("Batch.PutLoose", func(p *place, m *chatctx.Message) error { return p.batch(func(b *chatctx.Batch) { b.PutLoose(m) }) }),
		loose("Reply.Finish of loose ones", func(p *place, m *chatctx.Message) error {
			return p.ending(chatctx.Ending{Messages: []*chatctx.Message{pool.NewText(pool.Assistant, "a")}, Loose: []*chatctx.Message{m}})
		}),
		loose("Titles.Give", func(p *place, m *chatctx.Message) error {
			if err := p.made(p.store.New(p.t.Context(), record.NewContext{})); err != nil {
				return err
			}
			_, err := journal.NewTitles(base.Of(p.store)).Give(p.t.Context(), p.c.ID.String(), "t", m)
			return err
		}),
		said("Reply.Finish", func(p *place, v string) error {
			return p.ending(chatctx.Ending{Messages: []*chatctx.Message{pool.NewText(pool.Assistant, v)}})
		}),
		said("Reply.Save", func(p *place, v string) error {
			begun, err := p.c.BeginReply(p.t.Context(), "", chatctx.AppendOptions{})
			if err != nil {
				return err
			}
			if err := begun.Reply.Save(p.t.Context(), pool.NewText(pool.Assistant, v)); err != nil {
				return err
			}
			_, err = p.c.Settle(p.t.Context(), "", chatctx.SettleOptions{Force: true})
			return err
		}),
		said("messages.append", func(p *place, v string) error { return p.post("branches/main/messages", apiMessage(v), nil) }),
		{name: "chatctx add", put: func(p *place, v string) (string, error) {
			var out chatctx.Message
			err := p.commands(&out, []string{"new", "before"}, []string{"add", "--", "user", v}, []string{"log"})
			return out.Text(), err
		}},
		said("a native file", func(p *place, v string) error { return p.file(native(`,"title":"t"`, "", nativeMessage(v))) }).mending(),
		said("a file of another", func(p *place, v string) error { return p.file(chatGPT("t", v)) }).mending(),
	},
	beside: map[string]string{
		"ChatContext.BeginAsking": "it takes what an answer took; texts pass as in Reply.Save",
		"ImportRun.Import":        "it is Store.Import", "ImportRun.Ready": "it is the first half of Import",
		"history.pick": "it names messages", "history.drop": "it names messages", "marks.set": "it names messages",
	},
}
