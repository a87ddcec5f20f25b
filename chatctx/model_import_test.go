package chatctx_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange"
	"github.com/chatctx/chatctx/chatctx/settings"
	"github.com/chatctx/chatctx/pool"
)

// imports exports the conversation, lets somebody change it in a store of theirs, and brings their export. What they added comes, as one operation; what they did to what is
// here does not.
func (r *run) imports(c *convo) error {
	if len(c.replies) > 0 {
		return errSkip // the file has them unfinished
	}
	b, name := r.anyBranch(c)
	file := r.export(r.store(), c)
	if rep := r.bring(r.store(), file); rep.Changed() {
		r.fail("an export that comes back changes something: %+v", rep)
	}
	other, err := chatctx.OpenMemory(chatctx.Options{Program: "other", By: "bob", Clock: func() time.Time { return r.now.Time() }})
	r.must(err, "another store")
	defer other.Close()
	r.bring(other, file)
	there, err := other.Context(bg, c.id.String())
	r.must(err, "the conversation there")
	t, batch := c.begin(r.now, b), there.Begin(name)
	if err := elsewhere[r.rng.Intn(len(elsewhere))](r, t, batch); err != nil {
		return err
	}
	r.now++
	_, err = batch.Commit(bg)
	r.must(err, "a change elsewhere")
	file = r.export(other, c)
	rep := r.bring(r.store(), file)
	if rep.Changed() != (len(t.added) > 0 || len(t.made) > 0) || len(rep.Imported) != 1 {
		r.fail("the report says %+v", rep)
	}
	number := ""
	if rep.Changed() {
		t.onContext, t.now, number = true, r.now, rep.Imported[0].Operations[0]
	}
	r.commit(t, number, (*change).do)
	if again := r.bring(r.store(), file); again.Changed() {
		r.fail("a second time the file changes something: %+v", again)
	}
	return nil
}

func (r *run) export(s *chatctx.Store, c *convo) []byte {
	var out bytes.Buffer
	r.must(exchange.Export(bg, s, exchange.ExportOptions{Context: c.id.String()}, &out), "export")
	return out.Bytes()
}

func (r *run) bring(s *chatctx.Store, file []byte) *exchange.Report {
	rep, err := exchange.Import(bg, s, []string{"-"}, exchange.Options{Stdin: bytes.NewReader(file)})
	r.must(err, "import")
	if rep.Outcome() != exchange.Complete {
		r.fail("the import left something out: %+v", rep)
	}
	return rep
}

// elsewhere are the changes that are made in the other store, each with what comes of it here.
var elsewhere = []func(r *run, t *change, b *chatctx.Batch) error{
	func(r *run, t *change, b *chatctx.Batch) error {
		r.say("import of what went on elsewhere on %q", t.branch(t.target).name)
		m := t.told(r, b)
		t.splice(t.target, len(t.branch(t.target).list), 0, m)
		return nil
	},
	func(r *run, t *change, b *chatctx.Batch) error {
		from := t.branch(t.target)
		if len(from.list) == 0 {
			return errSkip
		}
		n := 1 + r.rng.Intn(len(from.list))
		if slices.ContainsFunc(from.list[:n], func(m id) bool { return len(t.message(m).calls) > 0 }) {
			return errSkip // they are copied there
		}
		r.words++
		name := fmt.Sprintf("elsewhere%d", r.words)
		r.say("import of %q, forked elsewhere from %q at %d", name, from.name, n)
		b.Fork(name, chatctx.ForkOptions{At: chatctx.RefTo(from.list[n-1])})
		m := t.told(r, b)
		made, err := t.create(name, from)
		r.must(err, "a name that is free")
		t.from[made] = t.target
		t.splice(made, 0, 0, append(slices.Clone(from.list[:n]), m)...)
		here := t.edit(made)
		here.sessions = sessionsOn(from.list, from.list[:n], from.sessions, true)
		here.settings = map[string]string{} // in force once somebody says so
		for key, value := range from.settings {
			here.settings[settings.HeldPrefix+strings.TrimPrefix(key, settings.HeldPrefix)] = value
		}
		return nil
	},
	func(r *run, t *change, b *chatctx.Batch) error {
		if len(t.branch(t.target).list) == 0 {
			return errSkip
		}
		r.say("import of marks, a prompt and settings from elsewhere")
		m := t.branch(t.target).list[r.rng.Intn(len(t.branch(t.target).list))]
		b.Mark(chatctx.RefTo(m), []string{"pinned", "excluded"}[r.rng.Intn(2)])
		b.Tag("elsewhere", chatctx.RefTo(m))
		b.SetSystem(r.text())
		b.Label("elsewhere")
		return nil
	},
	func(r *run, t *change, b *chatctx.Batch) error {
		list := t.branch(t.target).list
		if len(list) == 0 {
			return errSkip
		}
		r.say("import of what was rewound elsewhere on %q", t.branch(t.target).name)
		b.Rewind(chatctx.RefTo(list[r.rng.Intn(len(list))]))
		return nil
	},
}

// told appends a message there that the file brings.
func (t *change) told(r *run, b *chatctx.Batch) id {
	text := r.text()
	m := pool.NewText(pool.User, text)
	m.ID = pool.NewID()
	b.Append(m)
	t.keep(&message{id: m.ID, role: pool.User, text: hushed(text)})
	return m.ID
}
