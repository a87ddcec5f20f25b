package exchange

import (
	"path"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// SillyTavern's chats are a header, which old group chats lack, and a line for each message. Swipes are alternative answers; only the selected one was
// continued. A branch is another file that repeats the beginning of the chat that its header names.

const sillyTavernName = "sillytavern"

func detectSillyTavern(h *head) bool {
	return !h.array && h.any(func(v value) bool {
		return v.has("user_name") && v.has("character_name") || v.has("mes") && v.has("is_user") || v.has("chat_metadata") && v.has("create_date")
	})
}

type sillyTavern struct {
	r        *reading
	t        *thread
	in       record.Incoming
	n        int
	parent   string
	original []string // the texts of the chat that this one is a branch of
	of       string
}

func readSillyTavern(r *reading) error {
	s := &sillyTavern{r: r, t: r.thread(place{})}
	err := r.eachLine(func(at place, v value) error {
		if v.has("mes") || v.has("is_user") {
			s.message(at, v)
		} else {
			s.header(v)
		}
		return nil
	})
	s.in.Title, s.in.Conversation = r.stem(), r.stem()
	return r.atEnd(err, func() error { return s.t.handOn(&s.in, value{}, s.parent) })
}

func (s *sillyTavern) header(v value) {
	s.in.Created = v.get("create_date").time()
	if main := v.at("chat_metadata", "main_chat").str(); main != "" && s.of == "" {
		s.of = main
		if f, err := s.r.file.sibling(path.Join(path.Dir(s.r.file.path), main+".jsonl")); err == nil {
			s.originals(f)
		}
	}
	s.r.about(&s.in, v)
}

// originals reads the texts of the chat that this one is a branch of.
func (s *sillyTavern) originals(f *file) {
	text, err := f.read(int64(s.r.limits.Item))
	if err != nil {
		s.r.warn(place{}, "the chat that this one is a branch of cannot be read: %v", err)
		return
	}
	for len(text) > 0 {
		v, rest, err := new(document).parse(text, false)
		if err != nil {
			return
		}
		if text = rest; v.has("mes") {
			s.original = append(s.original, swipeText(v.get("mes")))
		}
	}
}

func (s *sillyTavern) message(at place, v value) {
	s.n++
	id := itoa(s.n)
	chosen, _ := v.get("swipe_id").int()
	text := swipeText(v.get("mes"))
	m := s.read(v, text, v.get("extra"))
	m.Created = v.get("send_date").time()
	var info []value
	for it := range v.get("swipe_info").items() {
		info = append(info, it)
	}
	all := []*chatctx.Message{}
	for it := range v.get("swipes").items() { // siblings are in the order of the swipes
		k := len(all)
		if all = append(all, m); k == int(chosen) {
			continue
		}
		about := value{}
		if k < len(info) {
			about = info[k]
		}
		all[k] = s.read(v, swipeText(it), about.get("extra"))
		all[k].Created = about.get("send_date").time()
	}
	if int(chosen) >= len(all) || chosen < 0 {
		chosen, all = int64(len(all)), append(all, m)
	}
	s.r.whole(at, v, append([]*chatctx.Message{m}, all...)...)
	for k := range all {
		if k == int(chosen) {
			s.add(at, id, m)
		} else {
			s.t.add(at, id+"."+itoa(k), s.parent, all[k])
		}
	}
	s.parent = id
}

// add adds the message that the chat continues from, with a link to the message that it is a copy of.
func (s *sillyTavern) add(at place, id string, m *chatctx.Message) {
	s.t.add(at, id, s.parent, m)
	if s.n <= len(s.original) && s.original[s.n-1] == m.Text() {
		s.t.records[s.t.seen[id]].copyOf = record.NodeLink{Conversation: s.of, Node: id}
	} else {
		s.original = nil
	}
}

// swipeText returns a text, or the text of an object as other programs write it.
func swipeText(v value) string { return firstOf(v.str(), v.get("message").str()) }

func (s *sillyTavern) read(v value, text string, extra value) *chatctx.Message {
	m := &chatctx.Message{Role: pool.Assistant}
	switch {
	case v.get("is_system").bool():
		m.Role, m.Hidden, m.Unsent, m.Kind = pool.System, true, true, extra.get("type").str()
	case v.get("is_user").bool():
		m.Role = pool.User
	default:
		m.Meta.Model, m.Meta.Provider = extra.get("model").str(), extra.get("api").str()
	}
	t := newTurn(m, "")
	t.think(extra.get("reasoning").str(), extra.get("reasoning_signature").str())
	t.text(text)
	if img := extra.get("image").str(); img != "" {
		t.put(urlPart(img, pool.ImagePart, "", "", extra.get("image")))
	}
	return t.done()[0]
}
