package exchange

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/pool"
	"github.com/google/uuid"
)

// A file of the store's own format may have content that this program does not know, from a later version or a person's edit. That of a message is kept with
// the message; the report names all other.

// decoded decodes a line of a kind. The report names the keys for which the type has no field, and those that are repeated. The error names the fields that
// are not what they have to be; the value has all others.
func decoded[T any](r *reading, at place, kind string, v value) (x T, err error) {
	s := strays{}
	raw := s.known(v, reflect.TypeFor[T](), kind)
	if len(s.unknown) > 0 {
		r.warn(at, "keys that this program does not know are left out: %s", show.Clip(strings.Join(s.unknown, ", "), 500))
	}
	if len(s.twice) > 0 {
		r.warn(at, "keys occur more than once, and the last of each counts: %s", show.Clip(strings.Join(s.twice, ", "), 500))
	}
	if v.broken() {
		r.repaired(at, "half characters or bytes that are not UTF-8 are replaced")
	}
	if nativeLines.Read(raw, &x) == nil {
		return x, nil
	}
	s = strays{check: true}
	raw = s.known(v, reflect.TypeFor[T](), kind)
	err = errors.New(show.Clip(strings.Join(s.wrong, ", "), 500))
	x = *new(T)
	if len(raw) == 0 || nativeLines.Read(raw, &x) != nil {
		return *new(T), err
	}
	return x, err
}

// strays are the members of a value for which the type has no field, those that a later one overrides and, with check, those that have no value of their
// field's type.
type strays struct {
	unknown, twice, wrong []string
	check                 bool
}

// fits reports whether the value is one of the type. It notes one that is not.
func (s *strays) fits(v value, t reflect.Type, path string) bool {
	if !s.check {
		return true
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	ok := v.is(nullKind)
	switch {
	case ok:
	case t.Kind() == reflect.Struct:
		ok = v.is(objectKind)
	case listed(t):
		ok = v.is(arrayKind)
	default:
		ok = json.Unmarshal(v.raw(), reflect.New(t).Interface()) == nil
	}
	if !ok {
		s.wrong = append(s.wrong, path+" is not "+wanted(t))
	}
	return ok
}

// listed reports whether JSON has an array for the type.
func listed(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8
}

// wanted says what a field of the type has to be.
func wanted(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[chatctx.ID]():
		return "an id like " + chatctx.ID{}.String()
	case t == reflect.TypeFor[pool.Hash]():
		return "a SHA-256 in 64 hex digits"
	case t == reflect.TypeFor[pool.Time]():
		return "a time like 2006-01-02T15:04:05Z"
	case listed(t):
		return "a list"
	}
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		return "base64"
	}
	return "a whole number"
}

// known returns the value without them. Names must match exactly.
func (s *strays) known(v value, t reflect.Type, path string) json.RawMessage {
	if !s.fits(v, t, path) {
		return nil
	}
	found := s.found()
	var out json.RawMessage
	switch {
	case t.Kind() == reflect.Pointer:
		return s.known(v, t.Elem(), path)
	case listed(t) && v.is(arrayKind):
		i := 0
		for it := range v.items() {
			if x := s.known(it, t.Elem(), path+"["+strconv.Itoa(i)+"]"); x != nil {
				out = append(append(out, ','), x...)
			}
			i++
		}
		out = listOf(out)
	case t.Kind() == reflect.Struct && v.is(objectKind):
		out = s.members(v, t, path)
	}
	if s.found() == found {
		return v.raw()
	}
	return out
}

func (s *strays) found() int { return len(s.unknown) + len(s.twice) + len(s.wrong) }

func (s *strays) members(v value, t reflect.Type, path string) json.RawMessage {
	fields, last := map[string]reflect.Type{}, map[string]uint32{}
	for _, f := range nativeLines.Fields(t) {
		fields[f.Name] = f.Type
	}
	for k, x := range v.members() {
		last[k] = x.i
	}
	w := objectWriter{b: []byte{'{'}}
	for k, x := range v.members() {
		at := path + "." + k
		switch {
		case fields[k] == nil:
			s.unknown = append(s.unknown, at)
		case last[k] != x.i:
			s.twice = append(s.twice, at)
		default:
			one := s.known(x, fields[k], at)
			if one == nil {
				continue
			}
			if len(w.b) > 1 {
				w.b = append(w.b, ',')
			}
			w.b = append(append(append(w.b, jsonText(k)...), ':'), one...)
		}
	}
	return append(w.b, '}')
}

// lastOnly returns a value without the members that a later one of the same name overrides.
func lastOnly(v value) json.RawMessage {
	var out json.RawMessage
	switch v.kind() {
	case arrayKind:
		for it := range v.items() {
			out = append(append(out, ','), lastOnly(it)...)
		}
		out = listOf(out)
	case objectKind:
		last := map[string]uint32{}
		for k, x := range v.members() {
			last[k] = x.i
		}
		w := objectWriter{}
		for k, x := range v.members() {
			if last[k] == x.i {
				w.addRaw(k, lastOnly(x))
			}
		}
		out = w.done()
	}
	if out == nil {
		return v.raw()
	}
	return out
}

// aMessage reads a message. Unknown members are kept with it; of a repeated key the last one counts.
func (n *nativeReader) aMessage(at place, v value) (*chatctx.Message, error) {
	m := &chatctx.Message{}
	unknown, err := m.ReadJSON(v.raw())
	if once := lastOnly(v); err != nil && len(once) != len(v.raw()) {
		if unknown, err = m.ReadJSON(once); err == nil {
			n.r.warn(at, "keys of the message occur more than once; the last of each counts")
		}
	}
	if id, isText := v.get("id"), v.get("id").is(stringKind); !isText || uuid.Validate(id.str()) != nil || id.str() == (uuid.UUID{}).String() {
		return n.identified(at, v)
	}
	if err == nil {
		err = m.Validate()
	}
	if err != nil {
		return n.mended(at, v, err)
	}
	n.keep(m, unknown)
	return m, nil
}

// keep puts the members that this program does not know into a message's provider data.
func (n *nativeReader) keep(m *chatctx.Message, unknown map[string]json.RawMessage) {
	more := objectWriter{}
	for _, key := range slices.Sorted(maps.Keys(unknown)) {
		more.addRaw(key, unknown[key])
		n.strange[key]++
	}
	n.besideMessage(m, more.done())
}

func (n *nativeReader) besideMessage(m *chatctx.Message, data json.RawMessage) {
	if data != nil {
		m.Meta.ProviderData = withData(m.Meta.ProviderData, nativeName, joined(m.Meta.ProviderData[nativeName], data))
	}
}

// identified reads a message that has no id with one of its own, the same each time, so that those after it keep their places. The file's is kept in the message's provider data.
func (n *nativeReader) identified(at place, v value) (*chatctx.Message, error) {
	id, sum := n.id, pool.HashOf(v.raw())
	for taken := true; taken; sum = pool.HashOf(sum[:]) {
		copy(id[6:], sum[:]) // the first bytes are the context's time
		id[6], id[8] = 0x70|id[6]&0x0f, 0x80|id[8]&0x3f
		taken = n.there[id]
	}
	w, was := objectWriter{}, objectWriter{}
	for k, x := range v.members() {
		if k != "id" {
			w.addRaw(k, x.raw())
		}
	}
	w.addRaw("id", jsonText(id.String()))
	whole, _, err := new(document).parse(w.done(), false)
	if err != nil {
		return nil, err
	}
	m, err := n.aMessage(at, whole)
	if err != nil {
		return nil, err
	}
	was.addIf(true, "id", v.get("id"))
	n.besideMessage(m, was.done())
	n.r.repaired(at, "the message has no valid id and gets the id %s; its provider data keeps the file's", id)
	return m, nil
}

// mended reads a message without the member that is not valid, or with its id alone, so that those after it keep their places. What it leaves out is
// kept in the message's provider data. wrong is what is not valid.
func (n *nativeReader) mended(at place, v value, wrong error) (*chatctx.Message, error) {
	members := map[string]json.RawMessage{} // of a repeated key the last one
	empty := objectWriter{}                 // the message with its keys alone
	for k, x := range v.members() {
		if _, twice := members[k]; !twice && k != "id" && k != "role" && k != "content" {
			empty.addRaw(k, []byte("null"))
		}
		members[k] = x.raw()
	}
	for k, plain := range map[string]string{"id": string(members["id"]), "role": `"user"`, "content": "[]"} {
		empty.addRaw(k, json.RawMessage(plain))
	}
	unknown, err := (&chatctx.Message{}).ReadJSON(empty.done())
	if err != nil {
		return nil, wrong
	}
	leave := []string{""} // all but its id
	for _, k := range slices.Sorted(maps.Keys(members)) {
		if _, is := unknown["/"+pointerName.Replace(k)]; !is && k != "id" && string(members[k]) != "null" {
			leave = append(leave, k)
		}
	}
	for _, out := range slices.Backward(leave) {
		whole, left := objectWriter{}, objectWriter{}
		for _, k := range slices.Sorted(maps.Keys(members)) {
			if gone := k == out || out == "" && k != "id"; !gone {
				whole.addRaw(k, members[k])
				continue
			}
			left.addRaw(k, members[k])
			switch k {
			case "role":
				whole.addRaw(k, jsonText(string(pool.User)))
			case "content":
				whole.addRaw(k, []byte("[]"))
			}
		}
		m := &chatctx.Message{}
		unknown, err := m.ReadJSON(whole.done())
		if err != nil || m.Validate() != nil || m.ID == (chatctx.ID{}) {
			continue
		}
		n.keep(m, unknown)
		n.besideMessage(m, left.done())
		n.r.repaired(at, "%s of the message cannot be read and goes to its provider data: %v", firstOf(out, "everything but the id"), wrong)
		return m, nil
	}
	return nil, wrong
}

// pointerName escapes a key for a JSON Pointer.
var pointerName = strings.NewReplacer("~", "~0", "/", "~1")

// kept reports the unknown keys that were kept with messages of the current context.
func (n *nativeReader) kept(at place) {
	if len(n.strange) == 0 {
		return
	}
	keys := slices.Sorted(maps.Keys(n.strange))
	n.r.warn(at, "messages of the conversation %q have keys that this program does not know; their provider data keeps them: %s", n.title, show.Clip(strings.Join(keys, ", "), 500))
	clear(n.strange)
}

// outside are consecutive lines that belong to no context.
type outside struct {
	first, last int
	kinds       map[string]int
}

// stray records a line that belongs to no context.
func (n *nativeReader) stray(at place, kind string) {
	if n.out.kinds == nil {
		n.out = outside{first: at.line, kinds: map[string]int{}}
	}
	n.out.last = at.line
	n.out.kinds[kind]++
}

// strayed reports the lines that belong to no context.
func (n *nativeReader) strayed() {
	if n.out.kinds == nil {
		return
	}
	var kinds []string
	for _, k := range slices.Sorted(maps.Keys(n.out.kinds)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", n.out.kinds[k], show.Clip(k, 40)))
	}
	n.r.skip(n.out.kinds["message"]+n.out.kinds["loose"], atLine(n.out.first), "the lines from here to %d belong to no conversation and are left out: %s", n.out.last, strings.Join(kinds, ", "))
	n.out, n.skipped = outside{}, n.r.report.Skipped
}

// nativeElsewhere is something that names a message or a branch which may be in any context of the file. It keeps the id, also if it is nowhere.
type nativeElsewhere struct {
	at     place
	of     chatctx.ID // the context that names it
	what   string
	id     chatctx.ID
	within chatctx.ID // reported if this context is in the file
}

func (n *nativeReader) names(at place, what string, id, within chatctx.ID) {
	if id != (chatctx.ID{}) {
		n.named = append(n.named, nativeElsewhere{at, n.id, what, id, within})
	}
}

// taskNames notes what the task of a sub-context names in its parent.
func (n *nativeReader) taskNames(at place, parent chatctx.ID, t *record.Task) {
	if t == nil || parent == (chatctx.ID{}) {
		return
	}
	n.names(at, "the branch of the task", t.Branch, parent)
	n.names(at, "the message of the task", t.Message, parent)
	n.names(at, "the summary of the task", t.Summary, parent)
}

// unknown reports what names messages and branches that the file does not have, once for each kind in a context.
func (n *nativeReader) unknown() {
	type kind struct {
		of   chatctx.ID
		what string
	}
	count := map[kind]int{}
	n.named = slices.DeleteFunc(n.named, func(x nativeElsewhere) bool { return n.there[x.id] || !n.whole[x.of] || !n.whole[x.within] })
	for _, x := range n.named {
		count[kind{x.of, x.what}]++
	}
	for _, x := range n.named {
		k := kind{x.of, x.what}
		if many := count[k]; many > 0 {
			n.r.warn(x.at, "%s is not in the file; its id is kept: %s%s", x.what, x.id, more(many-1))
			count[k] = 0
		}
	}
}

// more counts what is not listed.
func more(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", and %d more", n)
}

// nativeChild is a context of the file that names a parent.
type nativeChild struct {
	id    chatctx.ID
	title string
	at    place
	task  *record.Task
	alone bool // its parent has not come
}

// adopt puts the children that came before their parent below it, and applies its limits to those below them.
func (n *nativeReader) adopt(parent chatctx.ID, depth int) error {
	for i := range n.children[parent] {
		c := &n.children[parent][i]
		if depth == 0 && !c.alone || depth > 1000 || n.r.below == nil {
			continue
		}
		done, err := n.r.below(c.id, parent, c.task)
		if err != nil {
			return err
		}
		if done {
			c.alone = false
			if err := n.adopt(c.id, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// missing reports contexts that stand alone because their parents do not count, and fewer contexts than the file says.
func (n *nativeReader) missing() {
	for _, parent := range sortedIDs(n.children) {
		for _, c := range n.children[parent] {
			switch {
			case !c.alone || !n.whole[c.id]:
			case !n.whole[parent]:
				n.r.warn(c.at, "the parent of the sub-context %q is not in the file; it stands alone", c.title)
			case n.r.below != nil:
				n.r.warn(c.at, "the parent of the sub-context %q was made here; it stands alone, and the rules of that parent do not hold for it", c.title)
			}
		}
	}
	if gone := n.contexts - n.came; gone > 0 {
		n.r.warn(place{}, "the file should have %s and has %d; its end is missing", plural.Count(n.contexts, "conversation"), n.came)
		n.r.report.SkippedContexts += gone
	}
}
