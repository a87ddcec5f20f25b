package chatctx_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/internal/settings"
)

// What an operation changed, as the model knows it: from the states before and after it.

func callThing(k callKey) thing { return thing{name: fmt.Sprintf("call %s:%d", k.message, k.index)} }

// things gives what the operation changes.
func (t *change) things() map[thing]bool {
	out := maps.Clone(t.also)
	for b := range t.touched {
		before, after := t.c.branches[b], t.branches[b]
		switch {
		case before == nil && t.c.aside[b] == nil:
			out[thing{b, wholeBranch}] = true
			continue
		case (before == nil) != (after == nil):
			out[thing{b, isThere}] = true
		}
		if before == nil {
			before = t.c.aside[b]
		}
		if after == nil {
			after = t.aside[b]
		}
		for name := range before.differs(after) {
			out[thing{b, name}] = true
		}
	}
	if t.onContext {
		for name := range t.c.ctx.differs(t.ctx) {
			out[thing{name: name}] = true
		}
	}
	for k := range t.calls {
		out[callThing(k)] = true
	}
	return out
}

// differ gives the names under which two maps differ, after a word.
func differ[K comparable, V comparable](out map[string]bool, word string, a, b map[K]V) {
	for _, m := range []map[K]V{a, b} {
		for k := range m {
			was, had := a[k]
			is, has := b[k]
			if had != has || was != is {
				out[called(word, k)] = true
			}
		}
	}
}

func (b *branchState) differs(o *branchState) map[string]bool {
	out := map[string]bool{}
	for name, same := range map[string]bool{"history": slices.Equal(b.list, o.list) && slices.Equal(b.sessions, o.sessions), "name": b.name == o.name,
		"system": b.system == o.system, "prompt": b.prompt == o.prompt, "tokens": b.tokens == o.tokens} {
		if !same {
			out[name] = true
		}
	}
	differ(out, "setting", b.settings, o.settings)
	differ(out, "data", b.data, o.data)
	for _, m := range slices.Concat(b.queue, o.queue) {
		if slices.Contains(b.queue, m) != slices.Contains(o.queue, m) {
			out["waits "+fmt.Sprint(m)] = true
		}
	}
	return out
}

// called is the name of a thing: of a held setting that of what it becomes.
func called[K any](word string, k K) string {
	name := fmt.Sprint(k)
	for word == "setting" && strings.HasPrefix(name, settings.HeldPrefix) {
		name = strings.TrimPrefix(name, settings.HeldPrefix)
	}
	return word + " " + name
}

func (c *contextState) differs(o *contextState) map[string]bool {
	out := map[string]bool{}
	if c.title != o.title || c.renamed != o.renamed {
		out["title"] = true
	}
	differ(out, "setting", c.settings, o.settings)
	differ(out, "data", c.data, o.data)
	differ(out, "tag", c.tags, o.tags)
	differ(out, "mark", c.marks, o.marks)
	differ(out, "note", c.notes, o.notes)
	return out
}

// fieldsOfContext reports whether the operation changed more of the context than tags, marks and notes, and than which branch is active.
func (o *operation) fieldsOfContext() bool {
	for x := range o.things {
		if word, _, _ := strings.Cut(x.name, " "); x.of == theContext && slices.Contains([]string{"title", "setting", "data"}, word) {
			return true
		}
	}
	return false
}

// back gives a map the values of before under the names that an operation changed.
func back[K comparable, V comparable](o *operation, on id, word string, is, before map[K]V) map[K]V {
	out := maps.Clone(is)
	if out == nil {
		out = map[K]V{}
	}
	for _, m := range []map[K]V{is, before} {
		for k := range m {
			if !o.things[thing{on, called(word, k)}] {
				continue
			}
			if v, had := before[k]; had {
				out[k] = v
			} else {
				delete(out, k)
			}
		}
	}
	return out
}

// branchBack gives the state of a branch with what the operation changed as it was before.
func (o *operation) branchBack(b id, is *branchState) *branchState {
	s, was := is.copy(), o.was[b]
	if was == nil {
		return s
	}
	for name, to := range map[string]func(){
		"history": func() { s.list, s.sessions = was.list, was.sessions }, "name": func() { s.name = was.name }, "system": func() { s.system = was.system },
		"prompt": func() { s.prompt = was.prompt }, "tokens": func() { s.tokens = was.tokens },
	} {
		if o.things[thing{b, name}] {
			to()
		}
	}
	s.settings, s.data = back(o, b, "setting", s.settings, was.settings), back(o, b, "data", s.data, was.data)
	var queue []id
	for _, m := range slices.Concat(was.queue, s.queue) {
		from := s.queue
		if o.things[thing{b, "waits " + fmt.Sprint(m)}] {
			from = was.queue
		}
		if slices.Contains(from, m) && !slices.Contains(queue, m) {
			queue = append(queue, m)
		}
	}
	s.queue = queue
	return s
}

// contextBack is the same of the context.
func (o *operation) contextBack(is *contextState) *contextState {
	s, was := is.copy(), o.ctxBefore
	if o.things[thing{name: "title"}] {
		s.title, s.renamed = was.title, was.renamed
	}
	s.settings, s.data = back(o, theContext, "setting", s.settings, was.settings), back(o, theContext, "data", s.data, was.data)
	s.tags, s.marks, s.notes = back(o, theContext, "tag", s.tags, was.tags), back(o, theContext, "mark", s.marks, was.marks), back(o, theContext, "note", s.notes, was.notes)
	return s
}
