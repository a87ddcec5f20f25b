package intake

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/pool"
)

// One rule holds for all formats: where a file says of what is here already something that is not here, and nothing of it is taken, the import reports what.
// Words have versions, on branches of their own; titles, labels and app data follow the file. All else stays as it is here: what stands beside the words of a
// message, prompts, settings and summaries.

// mostUntaken is how many are listed of a conversation.
const mostUntaken = 1000

func noteUntaken(i *record.Imported, message, branch string, what ...string) {
	for _, w := range what {
		if i.UntakenCount++; len(i.Untaken) < mostUntaken {
			i.Untaken = append(i.Untaken, record.Untaken{Message: message, Branch: branch, What: w})
		}
	}
}

// beside returns a message without its words, which are compared by themselves, and without what belongs to its place here.
func beside(m *pool.Message) *pool.Message {
	out := &pool.Message{Role: m.Role, Content: besideParts(m.Content), Meta: m.Meta, Created: m.Created, Kind: m.Kind, Hidden: m.Hidden, Unsent: m.Unsent,
		Unfinished: m.Unfinished, AppData: m.AppData}
	for _, c := range m.Calls {
		out.Calls = append(out.Calls, pool.Call{ID: c.ID, Tool: c.Tool, Raw: c.Raw, Provider: c.Provider, Model: c.Model})
	}
	if r := m.Result; r != nil {
		out.Result = &pool.Result{RequestID: r.RequestID, Tool: r.Tool, CompactSummary: r.CompactSummary, Parts: besideParts(r.Parts)}
	}
	if m.Source != nil {
		s := *m.Source
		out.Source = &s
	}
	return out
}

func besideParts(parts []pool.Part) []pool.Part {
	out := slices.Clone(parts)
	for i := range out {
		p := &out[i]
		p.Text, p.Data, p.SHA256, p.Size = "", nil, pool.Hash{}, 0
	}
	return out
}

// besideOf names what a file's message has beside its words that the stored one has not.
func besideOf(now, known *pool.Message) ([]string, error) {
	a, b := beside(now), beside(known)
	have, err := poolstore.Encode(a)
	if err != nil {
		return nil, err
	}
	had, err := poolstore.Encode(b)
	if err != nil || bytes.Equal(have, had) {
		return nil, err
	}
	var raw [2][]byte
	for i, m := range []*pool.Message{a, b} {
		if s := m.Source; s != nil {
			raw[i], s.Raw = s.Raw, nil
		}
	}
	if have, err = a.AppendJSON(nil); err != nil {
		return nil, err
	}
	if had, err = b.AppendJSON(nil); err != nil {
		return nil, err
	}
	return append(unlike("", have, had), unlike("source.raw", raw[0], raw[1])...), nil
}

// unlikeValues names the values that are not the same here.
func unlikeValues(name string, now, here map[string]json.RawMessage) (out []string) {
	for _, k := range slices.Sorted(maps.Keys(now)) {
		was := here[k]
		if bare := strings.TrimPrefix(k, settings.HeldPrefix); was == nil {
			was = here[bare]
		}
		out = append(out, unlike(name+" "+k, now[k], was)...)
	}
	return out
}

// unlike names what the first JSON value says and the second does not. What is empty says nothing.
func unlike(name string, now, here []byte) []string {
	if len(now) == 0 || bytes.Equal(now, here) {
		return nil
	}
	a, isJSON := decoded(now)
	b, _ := decoded(here)
	if !isJSON {
		return []string{name}
	}
	var out []string
	seen := map[string]bool{}
	walk(name, 0, a, b, func(path string) {
		if !seen[path] {
			seen[path] = true
			out = append(out, path)
		}
	})
	if len(out) > mostPaths {
		out = append(out[:mostPaths-1], fmt.Sprintf("%d more", len(out)-mostPaths+1))
	}
	return out
}

// mostPaths is how many places are named of one value.
const mostPaths = 5

// decoded returns a JSON value with all that it says: of a repeated key the earlier values are in a list, under the key and earlierValues.
func decoded(raw []byte) (v any, ok bool) {
	if !json.Valid(raw) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := next(d)
	return v, err == nil
}

const earlierValues = " (earlier)"

// next returns the decoder's next value.
func next(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			x, err := next(d)
			if err != nil {
				return nil, err
			}
			list = append(list, x)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		object := map[string]any{}
		for d.More() {
			k, err := d.Token()
			if err != nil {
				return nil, err
			}
			x, err := next(d)
			if err != nil {
				return nil, err
			}
			key, _ := k.(string)
			if was, twice := object[key]; twice {
				earlier, _ := object[key+earlierValues].([]any)
				object[key+earlierValues] = append(earlier, was)
			}
			object[key] = x
		}
		_, err = d.Token()
		return object, err
	}
	return t, nil
}

// anywhere is how deep lists may lie whose items are looked for at any place of the other list. An item of a deeper one is compared with that at its own place,
// so that the time does not grow with the depth.
const anywhere = 8

// walk calls f with the paths of what is in the first value and not in the second.
func walk(path string, depth int, now, here any, f func(path string)) {
	switch x := now.(type) {
	case nil:
	case map[string]any:
		was, _ := here.(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(x)) {
			walk(strings.TrimPrefix(path+"."+k, "."), depth+1, x[k], was[k], f)
		}
	case []any:
		was, _ := here.([]any)
		items := map[string]bool{}
		if depth < anywhere {
			for _, w := range was {
				items[encoded(w)] = true
			}
		}
		for i, it := range x {
			if len(items) > 0 && items[encoded(it)] {
				continue
			}
			var at any
			if i < len(was) {
				at = was[i]
			}
			walk(path, depth+1, it, at, f)
		}
	case string:
		if was, _ := here.(string); x != "" && x != was && !strings.Contains(was, base.RedactedMark) {
			f(path)
		}
	case bool:
		if was, is := here.(bool); x != was && (x || is) {
			f(path)
		}
	default:
		if now != here {
			f(path)
		}
	}
}

// encoded returns a decoded value as JSON, alike for values that are alike.
func encoded(v any) string {
	raw, _ := json.Marshal(v) // what was decoded can be encoded
	return string(raw)
}

// besideBranch names what a file says of a branch beside its messages that is not here.
func (g *graft) besideBranch(b *branch.Branch, want *record.IncomingBranch) (out []string, err error) {
	if g.in.Format == NativeFormat && want.Name != b.Name && !strings.HasPrefix(b.Name, want.Name+".") {
		out = append(out, "name")
	}
	for _, p := range []struct{ name, now, id string }{{"system prompt", cmp.Or(want.System, g.in.System), b.System}, {"prompt", cmp.Or(want.Prompt, g.in.Prompt), b.Prompt}} {
		here, err := branchstore.Prompt(g.t.Tx, g.t.ID, p.id)
		if err != nil {
			return nil, err
		}
		if p.now != "" && p.now != here && !strings.Contains(here, base.RedactedMark) {
			out = append(out, p.name)
		}
	}
	out = append(out, unlikeValues("setting", want.Settings, b.Settings)...)
	out = append(out, unlikeValues("app data", want.AppData, b.AppData)...)
	for i := range want.Sessions {
		more, err := g.besideSession(b, &want.Sessions[i])
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// besideSession names what a file says of a session that none here says that begins at the same message.
func (g *graft) besideSession(b *branch.Branch, s *branch.Session) ([]string, error) {
	name := fmt.Sprintf("session from message %d", s.Start)
	best := []string{name}
	for i := range b.Sessions {
		here := &b.Sessions[i]
		if here.Start != s.Start {
			continue
		}
		var out []string
		same, err := g.sameSummary(s.Summary, here.Summary)
		if err != nil {
			return nil, err
		}
		if !same {
			out = append(out, "summary of the "+name)
		}
		for _, d := range s.Digests {
			if !slices.ContainsFunc(here.Digests, func(h branch.Digest) bool { return h.Text == d.Text || strings.Contains(h.Text, base.RedactedMark) }) {
				out = append(out, "digests of the "+name)
				break
			}
		}
		if out = append(out, unlikeValues("data of the "+name, s.Data, here.Data)...); len(out) == 0 {
			return nil, nil
		}
		best = out
	}
	return best, nil
}

// sameSummary reports whether the summary of a file's session, if it has one, says the same as the summary of the session here.
func (g *graft) sameSummary(now, here pool.ID) (bool, error) {
	if known, is := g.stored[now]; is {
		now = known
	}
	if now == here || now == (pool.ID{}) {
		return true, nil
	}
	was, err := poolstore.Get(g.t.Tx, g.t.ID, here)
	if err != nil || was == nil {
		return false, err
	}
	for _, m := range g.in.Loose {
		if m.ID == now {
			return poolstore.SameBut(was, m, base.RedactedMark)
		}
	}
	return false, nil
}

// besideCall names what a file says of a known call that is not here: the texts of its decisions, and the arguments that were in force.
func besideCall(t *journal.Txn, c *NativeCall) ([]string, error) {
	var rec record.CallRecord
	if _, err := base.GetRecord(t.Tx, base.CallBucket, base.CallKey(t.ID, c.Message, c.Index), &rec); err != nil {
		return nil, err
	}
	has := func(text string) bool {
		return text == "" || text == rec.Reason || strings.Contains(rec.Reason, base.RedactedMark) || slices.ContainsFunc(rec.Decisions, func(d record.Decision) bool {
			return d.Reason == text || strings.Contains(d.Reason, base.RedactedMark)
		})
	}
	if !has(c.Reason) || slices.ContainsFunc(c.Decisions, func(d record.Decision) bool { return !has(d.Reason) }) {
		return []string{fmt.Sprintf("state of the call %q", c.CallID)}, nil
	}
	return nil, nil
}
