package exchange

import (
	"path"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// ShareGPT's lists of {from, value} in data sets: an array or lines of conversations, some with a preferred answer and another. Ids are repeated with other
// content, so a conversation's key is made from its id and its content.

const shareGPTName = "sharegpt"

func detectShareGPT(h *head) bool {
	return h.any(shareGPTItem)
}

func shareGPTItem(v value) bool {
	list := shareGPTList(v)
	if !list.is(arrayKind) {
		return false
	}
	it := list.first()
	if v.is(arrayKind) || !v.has("conversations") {
		return it.has("from") || v.get("label").is(boolKind) && it.get("role").is(stringKind) // rated as a whole
	}
	return it.has("from") || it.get("role").is(stringKind) || list.len() == 0
}

// shareGPTList returns the list of messages of an item.
func shareGPTList(v value) value {
	if v.is(arrayKind) {
		return v
	}
	return firstPresent(v.get("conversations"), v.get("conversation"), v.get("items"), v.get("messages"))
}

func readShareGPT(r *reading) error {
	return r.eachItem("", func(at place, v value) error {
		if !shareGPTList(v).is(arrayKind) {
			r.skipContext(0, at, "no list of messages in %s", v.kind())
			return nil
		}
		s := &shareGPT{r: r, t: r.thread(at), at: at}
		return s.item(v)
	})
}

type shareGPT struct {
	r     *reading
	t     *thread
	at    place
	n     int
	files markedFiles
}

// markedFiles are the files of an item that marks in its texts stand for, by the marks.
type markedFiles struct {
	r    *reading
	left map[string][]value
}

func (r *reading) markedFiles(v value) markedFiles {
	return markedFiles{r, map[string][]value{"<image>": v.get("images").list(), "<video>": v.get("videos").list(), "<audio>": v.get("audios").list()}}
}

func (s *shareGPT) item(v value) error {
	s.files = s.r.markedFiles(v)
	s.t.system(v.get("system").str())
	for m := range shareGPTList(v).items() {
		s.message(m, s.t.last())
	}
	prompt := s.t.last()
	active := prompt
	for _, k := range []string{"chosen", "rejected"} {
		answer := v.get(k)
		list := []value{answer}
		if answer.is(arrayKind) {
			list = list[:0]
			for it := range answer.items() {
				list = append(list, it)
			}
		}
		at := prompt
		for _, it := range list {
			if it.kind() > nullKind {
				at = s.message(it, at)
			}
		}
		if k == "chosen" {
			active = at
		}
	}
	w := objectWriter{}
	if tools := v.get("tools"); tools.is(stringKind) {
		if raw, bad := argumentText(tools.str()); raw != nil && !bad {
			w.addRaw("tools", raw)
			tools.taken()
		} else {
			w.addIf(true, "tools", tools)
		}
	} else {
		w.addIf(true, "tools", tools)
	}
	w.addIf(true, "id", v.get("id"))
	in := &record.Incoming{Title: v.get("title").str(), AppData: appData(shareGPTName, w.done())}
	s.r.about(in, v, v.get("system").str())
	in.Conversation = s.t.contentID(v)
	if id := v.get("id").str(); id != "" {
		in.Conversation = id + " " + in.Conversation
	}
	return s.t.emit(in, active)
}

// message adds a message below parent and returns its id, or parent if it is left out.
func (s *shareGPT) message(v value, parent string) string {
	s.n++
	id, at := itoa(s.n), s.at.in("message "+itoa(s.n))
	if !v.is(objectKind) {
		s.t.skip(at, "", "", "%s that is not a message is left out", v.kind())
		return parent
	}
	role := firstOf(v.get("from").str(), v.get("role").str())
	body := firstPresent(v.get("value"), v.get("content"))
	m := &chatctx.Message{}
	switch role {
	case "function_call":
		m.Role = pool.Assistant
		s.call(at, m, body, id)
	case "observation", "tool", "function", "function_response":
		if several := s.results(body, parent); several != nil {
			s.r.wholeOf(at, several, v)
			s.t.add(at, id, parent, several...)
			return id
		}
		m = toolResult("", v.get("name").str(), contentParts(body))
	default:
		roleOf(m, role)
		m.Content = s.files.into(contentParts(body))
	}
	s.r.whole(at, v, m)
	s.t.add(at, id, parent, m)
	return id
}

// results reads the results of several calls in a row, which are one list, nil for anything else.
func (s *shareGPT) results(body value, parent string) (list []*chatctx.Message) {
	i, has := s.t.seen[parent]
	if !has || !body.is(stringKind) || s.t.records[i].message == nil || len(s.t.records[i].message.Calls) < 2 {
		return nil
	}
	v, rest, err := new(document).parse([]byte(body.str()), false)
	if err != nil || skipSpace(rest, 0) < len(rest) || !v.is(arrayKind) || v.len() != len(s.t.records[i].message.Calls) {
		return nil
	}
	for one := range v.items() {
		text := one.str()
		if !one.is(stringKind) {
			text = string(one.raw())
		}
		list = append(list, toolResult("", "", []pool.Part{textPart(text)}))
	}
	body.taken()
	return list
}

// call reads a call or a list of calls. It keeps anything else as it is.
func (s *shareGPT) call(at place, m *chatctx.Message, body value, id string) {
	v, ok := valueCalls(m, body, id)
	if !ok {
		m.Content = contentParts(body)
		source(m).Role = "function_call"
		s.r.warn(at, "the function call is not JSON with a name; it is kept as it is")
		return
	}
	if body.is(stringKind) {
		s.r.repeatedKeys(at, v)
	}
}

// valueCalls adds to a message the calls of a value: {"name", "arguments"} or a list of them, as JSON or as text. It returns what it read, and false if that is no call.
func valueCalls(m *chatctx.Message, body value, id string) (v value, ok bool) {
	if v = body; body.is(stringKind) {
		whole, rest, err := new(document).parse([]byte(body.str()), false)
		if err != nil || skipSpace(rest, 0) < len(rest) {
			return v, false
		}
		v = whole
	}
	list := []value{v}
	if v.is(arrayKind) {
		list = v.list()
	}
	if len(list) == 0 || slices.ContainsFunc(list, func(one value) bool { return !one.get("name").is(stringKind) }) {
		return v, false
	}
	for _, one := range list {
		call, _ := newCall("", one.get("name").str(), firstPresent(one.get("arguments"), one.get("parameters")))
		call.Raw = rawBeyond(one, keys("name", "arguments", "parameters"))
		addCall(m, call, id)
	}
	body.taken()
	return v, true
}

// into adds to a text the files of its marks.
func (f markedFiles) into(parts []pool.Part) []pool.Part {
	if len(parts) != 1 {
		return parts
	}
	text := parts[0].Text
	for at := strings.IndexByte(text, '<'); at >= 0; at = strings.IndexByte(text, '<') {
		text = text[at:]
		for mark, list := range f.left {
			if strings.HasPrefix(text, mark) && len(list) > 0 {
				parts = append(parts, f.r.fileBeside(list[0]))
				f.left[mark] = list[1:]
			}
		}
		text = text[1:]
	}
	return parts
}

// fileBeside reads a file that the conversation names, if it is beside the data.
func (r *reading) fileBeside(v value) pool.Part {
	name := v.str()
	if data, typ, ok := dataURL(name); ok && len(data) > 0 {
		return dataPart(pool.ImagePart, typ, "", data)
	}
	if f, err := r.file.sibling(path.Join(path.Dir(r.file.path), name)); err == nil {
		if b, err := f.read(r.limits.Asset); err == nil && len(b) > 0 {
			return filePart(path.Base(name), b)
		}
	}
	if strings.Contains(name, "://") {
		return pool.Part{Type: pool.ImagePart, URL: name}
	}
	return pool.Part{Type: "file_reference", Name: name, Raw: v.keep()}
}
