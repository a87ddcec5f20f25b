package care

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// Redact replaces secrets by a mark in everything that is stored; it is the only operation that changes messages. Some secrets stay and are named with the
// reason: those in parts that a provider has signed and in its own blocks, which the provider would not accept changed, those in names by which other
// records are found (of tools, calls and imports), and those in files that are no text. A file of text keeps its encoding. The undo history of the contexts goes, since it may hold secrets, and the file is rewritten, so that the
// bytes are gone.
func Redact(ctx context.Context, s *base.Store, o record.RedactOptions) (*record.Redacted, error) {
	if o.Find == nil {
		return nil, base.Invalidf("RedactOptions.Find is nil: it has to find the secrets")
	}
	out := &record.Redacted{}
	p, err := purge(ctx, s, false, func(tx kv.RwTx, p *purging) error {
		p.begin("redact", pool.ID{}, "")
		p.touched, out.Found, out.NotSearched = map[pool.ID]bool{}, nil, map[string]int{}
		blind, reworded := map[pool.Hash]string{}, map[pool.ID]bool{}
		ids, err := toRedact(s, tx, o.Context)
		if err != nil {
			return err
		}
		for _, id := range ids {
			r := newRedactor(tx, s, o.Find, blind)
			r.purged = p
			if err := r.context(id, &p.Collected); err != nil {
				return err
			}
			out.Found = append(out.Found, r.found...)
			if r.put {
				p.touched[id] = true
				p.changed(r.changed)
				maps.Copy(reworded, r.reworded)
			}
		}
		r := newRedactor(tx, s, o.Find, blind)
		if o.Context == "" {
			err = r.wholeStore()
			out.Found = append(out.Found, r.found...)
		}
		for _, kind := range blind {
			out.NotSearched[kind]++
		}
		if err == nil && len(p.touched) == 0 && !r.put {
			return errNothing
		}
		if err == nil {
			err = p.sourcesAnew(tx, p.touched, reworded)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Collected = p.Collected
	return out, nil
}

func (p *purging) changed(docs map[index.Doc]bool) {
	if p.rewritten == nil {
		p.rewritten = map[index.Doc]bool{}
	}
	for d := range docs {
		p.rewritten[d] = true
	}
}

func toRedact(s *base.Store, tx kv.Tx, ref string) ([]pool.ID, error) {
	if ref != "" {
		id, err := view.ResolveContext(s, tx, ref)
		return []pool.ID{id}, err
	}
	var ids []pool.ID
	err := tx.Scan(base.ContextBucket, kv.Range{}, func(key, _ []byte) error { ids = append(ids, pool.ID(key)); return nil })
	return ids, err
}

// redactor redacts one context.
type redactor struct {
	tx       kv.RwTx
	store    *base.Store
	find     func(string) ([]record.Secret, error)
	found    []record.Redaction
	blind    map[pool.Hash]string // artifacts in which nothing can be found, and their kinds
	changed  map[index.Doc]bool
	purged   *purging         // of a context: it notes the changed messages
	reworded map[pool.ID]bool // messages
	prompts  map[string]bool  // ids of prompts that were stored under a new id
	at       record.Redaction // the place that it looks at
	hit      bool             // a secret was replaced since hit was last reset
	put      bool             // a secret was replaced anywhere
	err      error
	quoted   *regexp.Regexp // a string of JSON
}

// newRedactor also compiles its expression, since as a variable of the package that would link package regexp into every program with a store.
func newRedactor(tx kv.RwTx, s *base.Store, find func(string) ([]record.Secret, error), blind map[pool.Hash]string) *redactor {
	return &redactor{tx: tx, store: s, find: find, blind: blind, changed: map[index.Doc]bool{}, reworded: map[pool.ID]bool{}, prompts: map[string]bool{}, quoted: regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)}
}

// text redacts a text. With a reason left the text stays as it is, and its secrets are listed.
func (r *redactor) text(field, left string, text *string) {
	secrets := r.secrets(field, left, *text)
	if len(secrets) == 0 || left != "" {
		return
	}
	var b strings.Builder
	last := 0
	for _, s := range secrets {
		b.WriteString((*text)[last:s.From] + base.RedactedMark)
		last = s.To
	}
	*text = b.String() + (*text)[last:]
	r.hit, r.put = true, true
}

// secrets finds the secrets of a text and lists them.
func (r *redactor) secrets(field, left, text string) []record.Secret {
	if text == "" || r.err != nil {
		return nil
	}
	var secrets []record.Secret
	secrets, r.err = r.find(text)
	for _, s := range secrets {
		at := r.at
		at.Field, at.What, at.Left, at.Shown = field, s.What, left, shown(text[s.From:s.To])
		r.found = append(r.found, at)
	}
	return secrets
}

// stays lists the secrets of texts that cannot be changed.
func (r *redactor) stays(field, why string, texts ...string) {
	for _, text := range texts {
		r.text(field, why, &text)
	}
}

// shown returns the beginning of a secret: enough to recognise it, not enough to use it.
func shown(secret string) string {
	runes := []rune(secret)
	return string(runes[:min(len(runes)/4, 6)]) + "…"
}

// json redacts JSON: the text as it is written, since a secret may be recognised by the key beside it, and the strings in it that have escapes. If the
// result would be no JSON, the JSON stays as it is.
func (r *redactor) json(field, left string, raw *json.RawMessage) {
	if len(*raw) == 0 || r.err != nil {
		return
	}
	text, n, hit, put := string(*raw), len(r.found), r.hit, r.put
	r.text(field, left, &text)
	if bytes.IndexByte(*raw, '\\') >= 0 {
		text = r.escaped(field, left, text)
	}
	if text == string(*raw) {
		return
	}
	if !json.Valid([]byte(text)) {
		r.hit, r.put = hit, put
		for i := range r.found[n:] {
			r.found[n+i].Left = "it would be no JSON any more"
		}
		return
	}
	*raw = json.RawMessage(text)
}

// escaped redacts the strings of JSON that have escapes.
func (r *redactor) escaped(field, left, text string) string {
	return r.quoted.ReplaceAllStringFunc(text, func(q string) string {
		var s string
		if !strings.Contains(q, `\`) || json.Unmarshal([]byte(q), &s) != nil {
			return q
		}
		was := s
		if r.text(field, left, &s); s == was {
			return q
		}
		raw, err := json.Marshal(s)
		if err != nil {
			return q
		}
		return string(raw)
	})
}

// data redacts values and their names.
func (r *redactor) data(field string, m map[string]json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		v, to := m[name], name
		r.json(field, "", &v)
		if r.text(field, "", &to); to != name {
			delete(m, name)
			to = freeIn(m, to)
		}
		m[to] = v
	}
}

// freeIn returns a name that a map does not have: the given one, or that with a number.
func freeIn[T any](m map[string]T, name string) string {
	free := name
	for n := 2; ; n++ {
		if _, taken := m[free]; !taken {
			return free
		}
		free = fmt.Sprint(name, ".", n)
	}
}

// Reasons why something stays.
const (
	signed = "the provider has signed it"
	asName = "other records are found by it: purge what has it"
)

func (r *redactor) parts(field string, parts []pool.Part) {
	for i := range parts {
		p := &parts[i]
		left, name := "", field
		if p.Signature != "" || p.Redacted != "" {
			left = signed
		}
		if p.Type == pool.ThinkingPart {
			name = "thinking"
		}
		r.text(name, left, &p.Text)
		r.text("file", left, &p.Name)
		r.text("file", left, &p.URL)
		r.json(name, map[bool]string{true: signed}[left != "" || p.Text != ""], &p.Raw)
		r.stays(name, signed, p.Signature, p.Redacted)
		r.stays(name, asName, p.Type, p.MediaType, p.Provider, p.Model, p.CallID)
		r.artifact(p, left)
	}
}

func (r *redactor) message(m *pool.Message) {
	r.parts("text", m.Content)
	for i := range m.Calls {
		c := &m.Calls[i]
		left := map[bool]string{true: signed}[len(c.Raw) > 0]
		r.json("call", left, &c.Arguments)
		r.json("call", left, &c.Raw)
		r.text("call", "", &c.Reason)
		r.stays("call", asName, c.ID, c.Tool, c.Provider, c.Model)
	}
	if t := m.Result; t != nil {
		r.stays("result", asName, t.RequestID, t.Tool)
		r.text("result", "", &t.Text)
		r.json("result", "", &t.JSON)
		r.parts("result", t.Parts)
		r.text("summary", "", &t.CompactSummary)
	}
	r.stays("model", asName, m.Meta.Model, m.Meta.Provider, m.Meta.FinishReason, m.Kind)
	r.text("error", "", &m.Meta.Error)
	r.json("usage", "", &m.Meta.Usage)
	r.data("provider data", m.Meta.ProviderData)
	r.data("app data", m.AppData)
	if m.Source != nil {
		r.stays("source", asName, m.Source.Format, m.Source.Conversation, m.Source.Node, m.Source.Role)
		raw := string(m.Source.Raw)
		r.text("source", "", &raw)
		if raw != string(m.Source.Raw) {
			m.Source.Raw = []byte(raw)
		}
	}
}

// context redacts one context.
func (r *redactor) context(id pool.ID, out *record.Collected) error {
	t, err := journal.BeginAt(r.store, r.tx, id)
	if err != nil {
		return err
	}
	r.at = record.Redaction{Context: id, Title: t.Rec.Title}
	for _, step := range []func(*journal.Txn) error{r.record, r.messages, r.branches, r.calls, r.tags, r.tools, r.forgotten, r.imports} {
		if err := step(t); err != nil {
			return err
		}
	}
	if r.err != nil || !r.put {
		return r.err
	}
	return forget(t, out)
}

func (r *redactor) messages(t *journal.Txn) error {
	id := t.ID
	var changed []*pool.Message
	err := poolstore.Scan(r.tx, id, func(mid pool.ID, m *pool.Message, err error) error {
		if err != nil {
			return err
		}
		r.at.Message, r.hit = mid, false
		if r.message(m); r.hit {
			changed = append(changed, m)
		}
		return r.err
	})
	r.at.Message = pool.ID{}
	if err == nil && len(changed) > 0 {
		for _, m := range changed {
			r.reworded[m.ID] = true
		}
		err = r.purged.noteMessages(r.tx, id, base.GoneRedacted, func(m pool.ID) bool { return r.reworded[m] })
	}
	for _, m := range changed {
		r.changed[find.DocOf(find.MessageDoc, id, m.ID)] = true
		if err == nil {
			err = find.PutMessage(r.tx, id, m, r.store.Now())
		}
	}
	return err
}

// branches redacts prompts, settings, digests, app data and names of branches. A changed prompt gets a new id.
func (r *redactor) branches(t *journal.Txn) error {
	var all []*branch.Branch
	if err := branchstore.All(t.Tx, t.ID, func(b *branch.Branch) error { all = append(all, b); return nil }); err != nil {
		return err
	}
	for _, b := range all {
		any := false
		for _, p := range []*string{&b.System, &b.Prompt} {
			text, err := branchstore.Prompt(t.Tx, t.ID, *p)
			if err != nil {
				return err
			}
			r.hit = false
			if r.text("prompt", "", &text); !r.hit {
				continue
			}
			any = true
			r.prompts[*p] = true
			r.changed[find.DocOf(find.PromptDoc, t.ID, pool.ID([]byte(*p)))] = true
			if *p, err = t.PutPrompt(text); err != nil {
				return err
			}
		}
		r.hit = false
		r.data("settings", b.Settings)
		r.data("app data", b.AppData)
		for i := range b.Sessions {
			for j := range b.Sessions[i].Digests {
				r.text("digest", "", &b.Sessions[i].Digests[j].Text)
			}
			r.data("session", b.Sessions[i].Data)
		}
		if err := r.branchName(t, b); err != nil {
			return err
		}
		if any = any || r.hit; any {
			b.Revision++
			if err := branchstore.Put(t.Tx, t.ID, b); err != nil {
				return err
			}
		}
	}
	return r.err
}

// calls redacts the decisions about calls.
func (r *redactor) calls(t *journal.Txn) error {
	keys, err := view.KeysWith(t.Tx, base.CallBucket, t.ID[:])
	if err != nil {
		return err
	}
	for _, key := range keys {
		rec := &record.CallRecord{}
		if _, err := base.GetRecord(t.Tx, base.CallBucket, key, rec); err != nil {
			return err
		}
		r.at.Message, r.hit = pool.ID(key[16:32]), false
		r.json("call", "", &rec.Effective)
		r.text("call", "", &rec.Reason)
		for i := range rec.Decisions {
			d := &rec.Decisions[i]
			for _, text := range []*string{&d.Reason, &d.Name, &d.Program} {
				r.text("call", "", text)
			}
			r.json("call", "", &d.Arguments)
			if d.Runs != nil {
				for j := range d.Runs.Command {
					r.text("call", "", &d.Runs.Command[j])
				}
				r.text("call", "", &d.Runs.URL)
				r.text("call", "", &d.Runs.Dir)
			}
		}
		if r.hit {
			if err := base.PutRecord(t.Tx, base.CallBucket, key, rec); err != nil {
				return err
			}
		}
	}
	r.at.Message = pool.ID{}
	return r.err
}

// record redacts the context's own record.
func (r *redactor) record(t *journal.Txn) error {
	r.hit = false
	r.text("title", "", &t.Rec.Title)
	r.at.Title = t.Rec.Title
	for i := range r.found {
		r.found[i].Title = t.Rec.Title // the old title must not be shown
	}
	r.data("settings", t.Rec.Settings)
	r.data("app data", t.Rec.AppData)
	labels := slices.Clone(t.Rec.Labels)
	for i := range labels {
		r.text("label", "", &labels[i])
	}
	var err error
	if t.Rec.Labels, err = base.WithLabels(nil, labels...); err != nil {
		return err
	}
	if t.Rec.Task != nil {
		raw, err := json.Marshal(t.Rec.Task)
		if err != nil {
			return err
		}
		text := json.RawMessage(raw)
		r.json("task", "", &text)
		if err := json.Unmarshal(text, t.Rec.Task); err != nil {
			return fmt.Errorf("the task of %s: %w", record.Short(t.ID), err)
		}
	}
	if !r.hit {
		return r.err
	}
	return cmp.Or(r.err, t.WriteContext())
}
