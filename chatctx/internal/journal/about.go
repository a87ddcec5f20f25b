package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/settings"
	"github.com/chatctx/chatctx/pool"
	"github.com/fxamacker/cbor/v2"
)

// Changed is a value that an operation put in the place of another.
type Changed struct {
	Of       string // title, name, branch, system, prompt, labels, or the name of a setting
	From, To string // the first words of it; both "" for a setting whose values may not be shown
}

// past reads a journal from its end. What an operation changed is stored as it was before, so what it was after is what the next newer one found, or what is there now. No words are stored
// twice: they are looked up where they lie, so that what was purged or redacted is gone from here too.
type past struct {
	tx     kv.Tx
	values map[string][]byte                     // of records, by bucket and key: what the newer ones found
	fields map[string]map[uint64]cbor.RawMessage // of records whose fields change, the same
}

func newPast() *past {
	return &past{values: map[string][]byte{}, fields: map[string]map[uint64]cbor.RawMessage{}}
}

// in is the same in another transaction, which may be run again.
func (p *past) in(tx kv.Tx) *past {
	return &past{tx, maps.Clone(p.values), maps.Clone(p.fields)}
}

// tell says what an operation of a context's or the store's journal was about, and goes back behind it.
func (p *past) tell(out *Operation, op *record.Operation) error {
	t := &telling{past: p, out: out, op: op}
	for i := len(op.Changes) - 1; i >= 0; i-- {
		var err error
		switch c := &op.Changes[i]; c.Kind {
		case record.RecordChange:
			err = t.record(c)
		case record.FieldsChange:
			err = t.fields(c)
		case record.SpliceChange:
			err = t.splice(c)
		}
		if err != nil {
			return err
		}
	}
	slices.Reverse(out.Changed)
	if t.made { // that it is the active one from then on goes without saying
		out.Changed = slices.DeleteFunc(out.Changed, func(c Changed) bool { return c.Of == wentOn })
	}
	for i := range out.Changed {
		out.Changed[i].Of = strings.TrimSpace(out.Changed[i].Of)
	}
	return nil
}

// wentOn marks a change of the active branch, while changes are collected.
const wentOn = "branch "

// telling is what is said about one operation.
type telling struct {
	*past
	out  *Operation
	op   *record.Operation
	made bool // it made a branch
}

// about notes what the operation was about; what comes later stands before, since changes are read from the last to the first.
func (t *telling) about(text string) {
	if text = FirstWords(text); text != "" {
		t.out.About = text
	}
}

func (t *telling) changed(of, from, to string) {
	if from, to = FirstWords(from), FirstWords(to); from != to {
		t.out.Changed = append(t.out.Changed, Changed{of, from, to})
	}
}

// record tells of a record that was put in the place of another.
func (t *telling) record(c *record.Change) error {
	at := c.Bucket + "\x00" + string(c.Key)
	after, known := t.values[at]
	if !known {
		raw, err := t.tx.Get(c.Bucket, c.Key)
		if err != nil {
			return err
		}
		after = bytes.Clone(raw)
	}
	t.values[at] = c.Old
	one := after
	if one == nil {
		one = c.Old
	}
	if c.Bucket == record.MetaBucket && bytes.Equal(c.Key, record.MetaSettings) {
		t.settings(settingsIn(c.Old), settingsIn(after))
		return nil
	}
	if c.Bucket == record.TagBucket && len(c.Key) > len(pool.ID{}) && len(one) == len(pool.ID{}) {
		words, err := t.words(pool.ID(c.Key[:16]), pool.ID(one))
		t.about(string(c.Key[16:]) + ": " + words)
		return err
	}
	t.about(nameIn(c.Bucket, one))
	return nil
}

// nameIn is what a record is called, and nothing else of what it says: a tool's environment and a token's hash are nobody's business here.
func nameIn(bucket string, raw []byte) string {
	var call record.CallRecord
	var tool record.Tool
	var rule record.Rule
	var token record.Token
	var context record.ContextRecord
	into := map[string]any{record.CallBucket: &call, record.ToolBucket: &tool, record.RuleBucket: &rule, record.TokenBucket: &token, record.ContextBucket: &context}[bucket]
	if into == nil || raw == nil || record.DecMode.Unmarshal(raw, into) != nil {
		return ""
	}
	if rule.Effect != "" {
		return rule.Effect + " " + cmp.Or(rule.Tool, "by default")
	}
	return cmp.Or(call.Tool, tool.Name, token.Name, context.Title)
}

func settingsIn(raw []byte) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	_ = record.DecMode.Unmarshal(raw, &all) // what cannot be read has none: check says so
	return all
}

// fields tells of fields of a context's or a branch's record.
func (t *telling) fields(c *record.Change) error {
	at := c.Bucket + "\x00" + string(c.Key)
	now := t.past.fields[at]
	if now == nil {
		raw, err := t.tx.Get(c.Bucket, c.Key)
		if err != nil {
			return err
		}
		now = map[uint64]cbor.RawMessage{}
		if raw != nil && record.DecMode.Unmarshal(raw, &now) != nil {
			return nil // damaged: check says so
		}
	}
	after := now
	now = maps.Clone(now)
	t.past.fields[at] = now
	for key, old := range c.Fields {
		if record.IsAbsent(old) {
			delete(now, key)
		} else {
			now[key] = old
		}
	}
	if len(c.Key) < len(pool.ID{}) {
		return nil
	}
	id := pool.ID(c.Key[:16])
	if c.Bucket == branch.Bucket {
		return t.branch(id, recordOf[branch.Branch](now), recordOf[branch.Branch](after))
	}
	return t.context(id, recordOf[record.ContextRecord](now), recordOf[record.ContextRecord](after))
}

// recordOf is a record with these fields; those that cannot be read are as they are where there are none.
func recordOf[T any](fields map[uint64]cbor.RawMessage) *T {
	rec := new(T)
	if raw, err := pool.Marshal(fields); err == nil {
		_ = record.DecMode.Unmarshal(raw, rec)
	}
	return rec
}

// branch tells what became of a branch's record.
func (t *telling) branch(id pool.ID, before, after *branch.Branch) error {
	if before.Removed != 0 && after.Removed == 0 {
		t.made = true
		return t.madeBranch(id, after)
	}
	if before.Removed == 0 && after.Removed != 0 {
		t.changed("branch", before.Name, "")
		return nil
	}
	t.changed("name", before.Name, after.Name)
	for _, prompt := range []struct{ of, from, to string }{{"system", before.System, after.System}, {"prompt", before.Prompt, after.Prompt}} {
		from, err := t.prompt(id, prompt.from)
		if err != nil {
			return err
		}
		to, err := t.prompt(id, prompt.to)
		if err != nil {
			return err
		}
		t.changed(prompt.of, from, to)
	}
	t.settings(before.Settings, after.Settings)
	return nil
}

// madeBranch tells where a new branch comes from, and what was put there: in a fork the message that it goes up to, else its own first one.
func (t *telling) madeBranch(id pool.ID, b *branch.Branch) error {
	if t.op.Undoes != 0 {
		t.changed("branch", "", b.Name)
		return nil
	}
	from, err := t.branchName(id, b.From)
	if err != nil {
		return err
	}
	t.changed("branch", from, b.Name)
	words := ""
	if t.op.What != "fork" && b.Segment != 0 && b.High > 0 {
		words, err = t.firstOf(id, []branch.Piece{{Segment: b.Segment, To: 1}})
	}
	if words == "" && err == nil {
		words, err = t.words(id, b.At)
	}
	t.about(words)
	return err
}

// context tells what became of a context's record.
func (t *telling) context(id pool.ID, before, after *record.ContextRecord) error {
	t.changed("title", before.Title, after.Title)
	t.changed("labels", strings.Join(before.Labels, ", "), strings.Join(after.Labels, ", "))
	t.settings(before.Settings, after.Settings)
	if before.Trashed != after.Trashed {
		t.about(after.Title)
	}
	if before.Active == after.Active {
		return nil
	}
	from, err := t.branchName(id, before.Active)
	if err != nil {
		return err
	}
	to, err := t.branchName(id, after.Active)
	t.changed(wentOn, from, to)
	return err
}

// branchName is what a branch was called then.
func (t *telling) branchName(ctx, id pool.ID) (string, error) {
	key := branch.Key(ctx, id)
	if then, ok := t.past.fields[branch.Bucket+"\x00"+string(key)]; ok {
		return recordOf[branch.Branch](then).Name, nil
	}
	raw, err := t.tx.Get(branch.Bucket, key)
	if raw == nil || err != nil {
		return "", err
	}
	b, err := branch.Decode(id, raw)
	if err != nil {
		return "", nil // damaged: check says so
	}
	return b.Name, nil
}

// settings tells which settings changed. Values are told of those alone that can hold no address, key or path.
func (t *telling) settings(before, after map[string]json.RawMessage) {
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(names))) { // changes are turned round in the end
		from, to := string(before[name]), string(after[name])
		if from == to {
			continue
		}
		if s, ok := settings.Lookup(name); !ok || !s.Harmless {
			t.out.Changed = append(t.out.Changed, Changed{Of: name})
			continue
		}
		t.changed(name, strings.Trim(from, `"`), strings.Trim(to, `"`))
	}
}

// splice tells of the first message that came, or of the first that went.
func (t *telling) splice(c *record.Change) error {
	for _, pieces := range [][]branch.Piece{c.Inserted, c.Removed} {
		if branch.Count(pieces) == 0 {
			continue
		}
		words, err := t.firstOf(t.out.Context, pieces)
		if words != "" || err != nil {
			t.about(words)
			return err
		}
	}
	return nil
}

// firstOf are the first words of the first message of pieces, "" where gc took it.
func (t *telling) firstOf(ctx pool.ID, pieces []branch.Piece) (string, error) {
	var first pool.ID
	err := branch.Read(t.tx, ctx, branch.Slice(pieces, 0, 1), func(_ int, id pool.ID) error {
		first = id
		return nil
	})
	if errors.Is(err, kv.ErrDamaged) || first == (pool.ID{}) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return t.words(ctx, first)
}

// words are the first words of a message, or the tools that it calls; "" where it is gone.
func (t *telling) words(ctx, id pool.ID) (string, error) {
	m, err := pool.Get(t.tx, ctx, id)
	if errors.Is(err, kv.ErrDamaged) {
		return "", nil
	}
	if m == nil || err != nil {
		return "", err
	}
	text := m.Text()
	if text == "" && m.Result != nil {
		text = m.Result.Text
	}
	for i := range m.Calls {
		text += " " + m.Calls[i].Tool
	}
	return FirstWords(text), nil
}

// prompt are the first words of a prompt.
func (t *telling) prompt(ctx pool.ID, id string) (string, error) {
	text, err := branch.Prompt(t.tx, ctx, id)
	if errors.Is(err, kv.ErrDamaged) {
		return "", nil
	}
	return FirstWords(text), err
}

// firstWords is how much of a text is told, in characters.
const firstWords = 80

// FirstWords is the beginning of a text on one line.
func FirstWords(text string) string {
	if len(text) > 20*firstWords {
		text = strings.ToValidUTF8(text[:20*firstWords], "")
	}
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > firstWords {
		return string(r[:firstWords-1]) + "…"
	}
	return text
}
