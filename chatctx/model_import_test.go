package chatctx_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/pool"
)

// shared is a conversation that a store elsewhere got by an export, and that goes on there and perhaps here.
type shared struct {
	*run
	c      *convo
	other  *chatctx.Store
	there  *chatctx.ChatContext
	target id           // the branch here that is theirs
	name   string       // its name there
	was    *branchState // as they got it

	apart string // the branch here on which theirs goes on if it went on otherwise here

	t *change        // what the next export brings
	b *chatctx.Batch // what is done there
}

// imports exports the conversation, lets somebody change it in a store of theirs while it may go on here, and brings their export. What they added comes, as one
// operation; what they did to what is here does not.
func (r *run) imports(c *convo) error {
	if len(c.replies) > 0 {
		return errSkip // the file has them unfinished
	}
	x := &shared{run: r, c: c}
	x.target, x.name = r.anyBranch(c)
	x.was = c.branches[x.target]
	file := r.export(r.store(), c)
	if rep := r.bring(r.store(), file); rep.Changed() {
		r.fail("an export that comes back changes something: %+v", rep)
	}
	var err error
	x.other, err = chatctx.OpenMemory(chatctx.Options{Program: "other", By: "bob", Clock: func() time.Time { return r.now.Time() }})
	r.must(err, "another store")
	defer x.other.Close()
	r.bring(x.other, file)
	x.there, err = x.other.Context(bg, c.id.String())
	r.must(err, "the conversation there")
	if err := x.here(); err != nil {
		return err
	}
	if err := x.rounds(); !errors.Is(err, errSkip) {
		return err
	}
	return nil // what was done here counts
}

// rounds does something there once or, if that came on a branch of its own, perhaps twice.
func (x *shared) rounds() error {
	if err := x.round(elsewhere[x.rng.Intn(len(elsewhere))]); err != nil || x.rng.Intn(2) == 0 || x.apart == "" {
		return err
	}
	x.target, _ = x.c.named(x.apart)
	x.was = x.c.branches[x.target]
	return x.round((*shared).wentOn)
}

// here does something on the branch that they have, or on the conversation, while they do not see it.
func (x *shared) here() error {
	steps := []func(*batch) error{nil, nil, (*batch).appendNew, (*batch).rewind, (*batch).title, (*batch).systemPrompt, (*batch).setSettings}
	step := steps[x.rng.Intn(len(steps))]
	if step == nil {
		return nil
	}
	b := &batch{run: x.run, on: x.target, change: x.c.begin(x.now, x.target), b: x.store().Begin(x.c.id.String(), x.name)}
	if err := step(b); err != nil {
		return err
	}
	x.say("here on %q: %v, ", x.name, b.words)
	done, err := b.b.Commit(bg)
	x.wanted(err, b.blocked, "a change here")
	if err == nil {
		x.commit(b.change, done.Operation, (*change).do)
	}
	return nil
}

// round does something there, and brings their export, twice.
func (x *shared) round(step func(*shared) error) error {
	r := x.run
	x.t, x.b = x.c.begin(r.now, x.target), x.there.Begin(x.name)
	if err := step(x); err != nil {
		return err
	}
	r.now++
	x.t.now = r.now
	_, err := x.b.Commit(bg)
	r.must(err, "a change elsewhere")
	t, file := x.t, r.export(x.other, x.c)
	rep := r.bring(r.store(), file)
	if want := len(t.added) > 0 || len(t.made) > 0 || t.onContext; rep.Changed() != want || len(rep.Imported) != 1 {
		r.fail("the report says %+v; want a change: %v", rep, want)
	}
	number := ""
	if rep.Changed() {
		t.onContext, number = true, rep.Imported[0].Operations[0]
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
var elsewhere = []func(*shared) error{(*shared).wentOn, (*shared).wentOn, (*shared).forked, (*shared).edited, (*shared).retitled, (*shared).named, (*shared).rewound}

// wentOn: the branch grows here if it is as they got it; else what they have of it stands on a branch of its own, which grows the next time.
func (x *shared) wentOn() error {
	if slices.Equal(x.was.list, x.t.branch(x.target).list) {
		x.say("import of what went on elsewhere on %q", x.name)
		x.t.splice(x.target, len(x.was.list), 0, x.told())
		return nil
	}
	if x.calls(x.was.list) {
		return errSkip // they are copied there
	}
	name := (&batch{run: x.run, change: x.t}).numbered(x.t.branch(x.target).name)
	x.say("import of what went on elsewhere on %q, which went on otherwise here, as %q", x.name, name)
	made := x.create(name, x.was.list, x.told())
	if from, is := x.t.c.from[x.target]; is {
		x.t.from[made] = from
	}
	s := x.t.edit(made)
	s.sessions, s.data, s.tokens = x.was.sessions, x.was.data, x.was.tokens
	x.apart = name
	return nil
}

func (x *shared) forked() error {
	n, err := x.some()
	if err != nil {
		return err
	}
	name := x.newBranch()
	x.say("import of %q, forked elsewhere from %q at %d", name, x.name, n)
	x.b.Fork(name, chatctx.ForkOptions{At: record.RefTo(x.was.list[n-1])})
	x.t.from[x.create(name, x.was.list[:n], x.told())] = x.target
	return nil
}

func (x *shared) edited() error {
	n, err := x.some()
	if err != nil {
		return err
	}
	name, text := x.newBranch(), x.text()
	x.say("import of %q, edited elsewhere on %q at %d", name, x.name, n)
	x.b.Edit(record.RefTo(x.was.list[n-1]), text, record.EditOptions{Name: name})
	m := *x.t.message(x.was.list[n-1])
	m.note = x.t.ctx.note(&m)
	m.id, m.ours, m.from, m.sums, m.text, m.thinks = pool.NewID(), true, id{}, id{}, hushed(text), false
	x.t.keep(&m)
	x.t.from[x.create(name, x.was.list[:n-1], m.id)] = x.target
	return nil
}

// retitled: the title follows them, unless somebody gave one here.
func (x *shared) retitled() error {
	text := x.text()
	x.say("import of a title from elsewhere")
	x.b.SetTitle(text)
	if !x.t.ctx.renamed && x.t.ctx.title != hushed(text) {
		x.t.editContext().title = hushed(text)
	}
	return nil
}

func (x *shared) named() error {
	if len(x.was.list) == 0 {
		return errSkip
	}
	x.say("import of marks, a prompt and settings from elsewhere")
	m := record.RefTo(x.was.list[x.rng.Intn(len(x.was.list))])
	x.b.Mark(m, []string{"pinned", "excluded"}[x.rng.Intn(2)])
	x.b.Tag("elsewhere", m)
	x.b.SetSystem(x.text())
	x.b.Label("elsewhere")
	return nil
}

func (x *shared) rewound() error {
	if len(x.was.list) == 0 {
		return errSkip
	}
	x.say("import of what was rewound elsewhere on %q", x.name)
	x.b.Rewind(record.RefTo(x.was.list[x.rng.Intn(len(x.was.list))]))
	return nil
}

// some chooses with how many messages of the branch something begins elsewhere.
func (x *shared) some() (int, error) {
	if len(x.was.list) == 0 {
		return 0, errSkip
	}
	n := 1 + x.rng.Intn(len(x.was.list))
	if x.calls(x.was.list[:n]) {
		return 0, errSkip // they are copied there
	}
	return n, nil
}

func (x *shared) calls(list []id) bool {
	return slices.ContainsFunc(list, func(m id) bool { return len(x.t.message(m).calls) > 0 })
}

func (x *shared) newBranch() string {
	x.words++
	return fmt.Sprintf("elsewhere%d", x.words)
}

// create makes a branch here of what theirs begins with and one message more.
func (x *shared) create(name string, list []id, m id) id {
	made, err := x.t.create(name, x.was)
	x.must(err, "a name that is free")
	x.t.splice(made, 0, 0, append(slices.Clone(list), m)...)
	here := x.t.edit(made)
	here.sessions = sessionsOn(x.was.list, list, x.was.sessions, true)
	here.settings = map[string]string{} // in force once somebody says so
	for key, value := range x.was.settings {
		here.settings[settings.HeldPrefix+strings.TrimPrefix(key, settings.HeldPrefix)] = value
	}
	return made
}

// told appends a message there that the file brings.
func (x *shared) told() id {
	text := x.text()
	m := pool.NewText(pool.User, text)
	m.ID = pool.NewID()
	x.b.Append(m)
	x.t.keep(&message{id: m.ID, role: pool.User, text: hushed(text)})
	return m.ID
}
