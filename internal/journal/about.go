package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// past reads a journal from its end. An operation is stored with the old values of what it changed, so the values after it are those that the next newer
// operation found, or the present ones. Texts are not stored twice: they are read from their records, so what was purged or redacted does not show up here
// either.
type past struct {
	tx     kv.Tx
	values map[string][]byte                     // of records, by bucket and key: the values that the newer operations found
	fields map[string]map[uint64]cbor.RawMessage // the same for single fields of records
}

func newPast() *past {
	return &past{values: map[string][]byte{}, fields: map[string]map[uint64]cbor.RawMessage{}}
}

// in returns a copy of p for a transaction that may run again.
func (p *past) in(tx kv.Tx) *past {
	return &past{tx, maps.Clone(p.values), maps.Clone(p.fields)}
}

// tell fills in what an operation was about, and steps back past it.
func (p *past) tell(out *record.Operation, op *base.Operation) error {
	t := &telling{past: p, out: out, op: op}
	for i := len(op.Changes) - 1; i >= 0; i-- {
		var err error
		switch c := &op.Changes[i]; c.Kind {
		case base.RecordChange:
			err = t.record(c)
		case base.FieldsChange:
			err = t.fields(c)
		case base.SpliceChange:
			err = t.splice(c)
		}
		if err != nil {
			return err
		}
	}
	slices.Reverse(out.Changed)
	if t.made { // it goes without saying that a new branch becomes the active one
		out.Changed = slices.DeleteFunc(out.Changed, func(c record.Changed) bool { return c.Of == wentOn })
	}
	for i := range out.Changed {
		out.Changed[i].Of = strings.TrimSpace(out.Changed[i].Of)
	}
	return nil
}

// wentOn marks a change of the active branch while changes are collected.
const wentOn = "branch "

// telling is the account of one operation.
type telling struct {
	*past
	out  *record.Operation
	op   *base.Operation
	made bool // the operation made a branch
}

// about sets what the operation was about. Changes are read from last to first, so the first one's text wins.
func (t *telling) about(text string) {
	if text = FirstWords(text); text != "" {
		t.out.About = text
	}
}

func (t *telling) changed(of, from, to string) {
	if from, to = FirstWords(from), FirstWords(to); from != to {
		t.out.Changed = append(t.out.Changed, record.Changed{Of: of, From: from, To: to})
	}
}

// record adds a change of a whole record.
func (t *telling) record(c *base.Change) error {
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
	if c.Bucket == base.MetaBucket && bytes.Equal(c.Key, base.MetaSettings) {
		t.settings(settingsIn(c.Old), settingsIn(after))
		return nil
	}
	if c.Bucket == base.TagBucket && len(c.Key) > len(pool.ID{}) && len(one) == len(pool.ID{}) {
		from, err := t.tagged(c, c.Old)
		if err != nil {
			return err
		}
		to, err := t.tagged(c, after)
		t.about(cmp.Or(to, from))
		t.changed("tag", from, to)
		return err
	}
	if c.Bucket == base.MarkBucket && len(c.Key) == 2*len(pool.ID{}) {
		words, err := t.words(pool.ID(c.Key[:16]), pool.ID(c.Key[16:]))
		t.about(words)
		t.changed("mark", string(c.Old), string(after))
		return err
	}
	t.about(nameIn(c.Bucket, one))
	return nil
}

// tagged returns a tag with the first words of the message that had it, "" if none had.
func (t *telling) tagged(c *base.Change, message []byte) (string, error) {
	if len(message) != len(pool.ID{}) {
		return "", nil
	}
	words, err := t.words(pool.ID(c.Key[:16]), pool.ID(message))
	return string(c.Key[16:]) + ": " + words, err
}

// nameIn returns the name in a record and nothing else: a tool's environment and a token's hash must not be shown here.
func nameIn(bucket string, raw []byte) string {
	var call record.CallRecord
	var tool record.Tool
	var rule record.Rule
	var token base.Token
	var context base.ContextRecord
	into := map[string]any{base.CallBucket: &call, base.ToolBucket: &tool, base.RuleBucket: &rule, base.TokenBucket: &token, base.ContextBucket: &context}[bucket]
	if into == nil || raw == nil || stored.Unmarshal(raw, into) != nil {
		return ""
	}
	if rule.Effect != "" {
		return rule.Effect + " " + cmp.Or(rule.Tool, "by default")
	}
	return cmp.Or(call.Tool, tool.Name, token.Name, context.Title)
}

func settingsIn(raw []byte) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	_ = stored.Unmarshal(raw, &all) // an unreadable record has no settings; check reports it
	return all
}

// fields adds a change of fields in a context's or a branch's record.
func (t *telling) fields(c *base.Change) error {
	at := c.Bucket + "\x00" + string(c.Key)
	now := t.past.fields[at]
	if now == nil {
		raw, err := t.tx.Get(c.Bucket, c.Key)
		if err != nil {
			return err
		}
		now = map[uint64]cbor.RawMessage{}
		if raw != nil && stored.Unmarshal(raw, &now) != nil {
			return nil // damaged: check reports it
		}
	}
	after := now
	now = maps.Clone(now)
	t.past.fields[at] = now
	for key, old := range c.Fields {
		if base.IsAbsent(old) {
			delete(now, key)
		} else {
			now[key] = old
		}
	}
	if len(c.Key) < len(pool.ID{}) {
		return nil
	}
	id := pool.ID(c.Key[:16])
	if c.Bucket == branchstore.Bucket {
		return t.branch(id, recordOf[branch.Branch](now), recordOf[branch.Branch](after))
	}
	return t.context(id, recordOf[base.ContextRecord](now), recordOf[base.ContextRecord](after))
}

// recordOf returns a record with these fields. Fields that cannot be decoded have their zero values.
func recordOf[T any](fields map[uint64]cbor.RawMessage) *T {
	rec := new(T)
	if raw, err := stored.Marshal(fields); err == nil {
		_ = stored.Unmarshal(raw, rec)
	}
	return rec
}

// branch adds the changes of a branch's record.
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
	return t.window(id, newestSession(before), newestSession(after))
}

// newestSession returns the session that a branch is in, one from its beginning if it has none.
func newestSession(b *branch.Branch) *branch.Session {
	if i := branchstore.Current(b.Sessions); i >= 0 {
		return &b.Sessions[i]
	}
	return &branch.Session{}
}

// window adds what became of what goes to the model: up to where results are pruned, digests, where the session begins and its summary.
func (t *telling) window(id pool.ID, before, after *branch.Session) error {
	t.changed("pruned up to", placeText(before.PrunedTo), placeText(after.PrunedTo))
	t.changed("digests", digestsText(before), digestsText(after))
	t.changed("session from", placeText(before.Start), placeText(after.Start))
	if before.Summary == after.Summary {
		return nil
	}
	from, err := t.summary(id, before)
	if err != nil {
		return err
	}
	to, err := t.summary(id, after)
	t.changed("summary", from, to)
	return err
}

func (t *telling) summary(id pool.ID, s *branch.Session) (string, error) {
	if s.Summary == (pool.ID{}) {
		return "", nil
	}
	return t.words(id, s.Summary)
}

// placeText names a position, "" for the first one, with which everything begins.
func placeText(pos int) string {
	if pos < 2 {
		return ""
	}
	return "#" + strconv.Itoa(pos)
}

func digestsText(s *branch.Session) string {
	var all []string
	for _, d := range s.Digests {
		all = append(all, fmt.Sprintf("#%d to #%d", d.From, d.To))
	}
	return strings.Join(all, ", ")
}

// madeBranch adds the branch from which a new one comes and what it holds: for a fork its last message, else its own first one.
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

// context adds the changes of a context's record.
func (t *telling) context(id pool.ID, before, after *base.ContextRecord) error {
	t.changed("title", before.Title, after.Title)
	t.changed("labels", strings.Join(before.Labels, ", "), strings.Join(after.Labels, ", "))
	t.settings(before.Settings, after.Settings)
	if before.Trashed != after.Trashed {
		t.about(strings.TrimSuffix(after.Title+", "+t.out.About, ", "))
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

// branchName returns the name of a branch at that time.
func (t *telling) branchName(ctx, id pool.ID) (string, error) {
	key := branchstore.Key(ctx, id)
	if then, ok := t.past.fields[branchstore.Bucket+"\x00"+string(key)]; ok {
		return recordOf[branch.Branch](then).Name, nil
	}
	raw, err := t.tx.Get(branchstore.Bucket, key)
	if raw == nil || err != nil {
		return "", err
	}
	b, err := branchstore.Decode(id, raw)
	if err != nil {
		return "", nil // damaged: check reports it
	}
	return b.Name, nil
}

// settings adds the settings that changed. It shows the values only of settings that cannot hold an address, a key or a path.
func (t *telling) settings(before, after map[string]json.RawMessage) {
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(names))) { // changes are reversed at the end
		from, to := string(before[name]), string(after[name])
		if from == to {
			continue
		}
		if s, ok := settings.Lookup(name); !ok || !s.Harmless {
			t.out.Changed = append(t.out.Changed, record.Changed{Of: name})
			continue
		}
		t.changed(name, strings.Trim(from, `"`), strings.Trim(to, `"`))
	}
}

// splice adds the first message that the operation put on the branch, or else the first that it took off.
func (t *telling) splice(c *base.Change) error {
	for _, pieces := range [][]branch.Piece{c.Inserted, c.Removed} {
		if branchstore.Count(pieces) == 0 {
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

// firstOf returns the first words of the first message of pieces, "" if gc took it.
func (t *telling) firstOf(ctx pool.ID, pieces []branch.Piece) (string, error) {
	var first pool.ID
	err := branchstore.Read(t.tx, ctx, branchstore.Slice(pieces, 0, 1), func(_ int, id pool.ID) error {
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

// words returns the first words of a message, or the names of the tools that it calls; "" if the message is gone.
func (t *telling) words(ctx, id pool.ID) (string, error) {
	m, err := poolstore.Get(t.tx, ctx, id)
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

// prompt returns the first words of a prompt.
func (t *telling) prompt(ctx pool.ID, id string) (string, error) {
	text, err := branchstore.Prompt(t.tx, ctx, id)
	if errors.Is(err, kv.ErrDamaged) {
		return "", nil
	}
	return FirstWords(text), err
}

// firstWords bounds the texts in an account, in characters.
const firstWords = 80

// FirstWords returns the beginning of a text on one line.
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
