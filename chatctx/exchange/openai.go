package exchange

import (
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// OpenAI's messages: a line or item for each conversation, as {messages} of fine-tuning files and requests, {prompt, completion}, pairs of a preferred and
// another answer, or the output of a batch with its choices; or a single list of messages. There are no ids and no times.

const openAIName = "openai-chat"

const openAIProvider = "openai"

func detectOpenAI(h *head) bool {
	if h.any(openAIItem) {
		return true
	}
	return h.first().get("role").is(stringKind) && openAIBody(h.first())
}

// openAIBody reports whether a message has one of the members that OpenAI's have.
func openAIBody(v value) bool {
	return v.has("content") || v.has("tool_calls") || v.has("refusal") || v.has("function_call")
}

func openAIItem(v value) bool {
	list := firstPresent(v.get("messages"), v.get("chosen_messages"), v.at("input", "messages"))
	return isAlpaca(v) || list.first().get("role").is(stringKind) || openAIChoices(v).first().get("message").is(objectKind) || openAIAnswered(v)
}

// openAIAnswered reports whether an item of a data set is a prompt with an answer or with two, or two conversations of which one is preferred. Each is a text or
// a list of messages.
func openAIAnswered(v value) bool {
	says := func(v value, orAbsent bool) bool {
		return v.is(stringKind) || v.first().get("role").is(stringKind) || orAbsent && v.kind() <= nullKind
	}
	prompt, chosen := v.get("prompt"), v.get("chosen")
	if says(chosen, false) && says(v.get("rejected"), false) {
		return says(prompt, chosen.is(arrayKind))
	}
	return says(prompt, false) && says(v.get("completion"), false)
}

func openAIChoices(v value) value {
	return firstPresent(v.at("response", "body", "choices"), v.at("body", "choices"), v.get("choices"))
}

func readOpenAI(r *reading) error {
	if r.head.first().get("role").is(stringKind) { // one message an item, or a line
		o := &openAI{r: r, t: r.thread(place{})}
		err := r.eachItem("", func(at place, v value) error {
			o.at = at
			o.next(v, o.t.last())
			return nil
		})
		return r.atEnd(err, func() error { return o.emit(value{}, o.t.last()) })
	}
	return r.eachItem("", func(at place, v value) error {
		o := &openAI{r: r, t: r.thread(at), at: at}
		if !v.is(objectKind) {
			r.skipContext(0, at, "%s where a conversation should be", v.kind())
			return nil
		}
		return o.item(v)
	})
}

type openAI struct {
	r  *reading
	t  *thread
	at place
	n  int
	id string // of the conversation, if the file has one

	files markedFiles
}

// isAlpaca reports whether an item is an instruction with an answer, as in data sets.
func isAlpaca(v value) bool {
	return v.get("instruction").is(stringKind) && (v.get("output").is(stringKind) || v.get("chosen").is(stringKind))
}

// alpaca reads such an item, and returns the id of its answer.
func (o *openAI) alpaca(v value) string {
	o.t.system(v.get("system").str())
	put := func(parent string, role pool.Role, parts ...pool.Part) string {
		o.n++
		o.t.add(o.at, itoa(o.n), parent, &chatctx.Message{Role: role, Content: o.files.into(parts)})
		return itoa(o.n)
	}
	at := o.t.last()
	for turn := range v.get("history").items() {
		for i, said := range turn.list() {
			at = put(at, []pool.Role{pool.User, pool.Assistant}[i%2], contentParts(said)...)
			if said.is(stringKind) {
				said.taken()
			}
		}
	}
	asked := []pool.Part{textPart(strings.TrimSuffix(v.get("instruction").str()+"\n"+v.get("input").str(), "\n"))}
	if input := v.get("input"); input.kind() >= arrayKind {
		asked = append(asked, contentParts(input)...)
	}
	prompt := put(at, pool.User, asked...)
	said := v.pick("output|chosen")
	answer := put(prompt, pool.Assistant, textPart(said.str()))
	rejected := v.get("rejected")
	if rejected.is(stringKind) {
		put(prompt, pool.Assistant, textPart(rejected.str()))
	}
	for _, x := range []value{v.get("system"), v.get("instruction"), v.get("input"), said, rejected} {
		if x.is(stringKind) {
			x.taken()
		}
	}
	return answer
}

func (o *openAI) item(v value) error {
	active := ""
	o.files = o.r.markedFiles(v)
	switch choices := openAIChoices(v); {
	case v.get("messages").is(arrayKind):
		o.list(v.get("messages"), "")
		active = o.t.last()
		o.choices(choices)
	case choices.is(arrayKind):
		body := firstPresent(v.at("response", "body"), v.get("body"), v)
		o.id = firstOf(body.get("id").str(), v.get("custom_id").str())
		o.choices(choices)
		active = o.first()
		for i := range o.t.records {
			if m := o.t.records[i].message; m != nil {
				m.Created, m.Meta.Model = body.get("created").time(), body.get("model").str()
			}
		}
	case v.get("chosen_messages").is(arrayKind):
		o.list(v.get("chosen_messages"), "")
		active = o.t.last()
		o.other(v.get("rejected_messages"))
	case v.at("input", "messages").is(arrayKind):
		o.list(v.at("input", "messages"), "")
		prompt := o.t.last()
		o.list(v.get("preferred_output"), prompt)
		active = o.t.last()
		o.list(v.get("non_preferred_output"), prompt)
	case isAlpaca(v):
		active = o.alpaca(v)
	case openAIAnswered(v):
		active = o.answered(v)
	default:
		o.r.skipContext(0, o.at, "no messages in an item with %s", whichKeys(v))
		return nil
	}
	return o.emit(v, active)
}

// answered reads a prompt with its answers, and returns the id of the preferred one.
func (o *openAI) answered(v value) string {
	say := func(v value, role pool.Role, parent string) string {
		if !v.is(stringKind) {
			return o.list(v, parent)
		}
		o.n++
		o.t.add(o.at, itoa(o.n), parent, pool.NewText(role, v.str()))
		v.taken()
		return itoa(o.n)
	}
	prompt := ""
	if p, chosen := v.get("prompt"), v.get("chosen"); !p.is(stringKind) || !chosen.is(arrayKind) || chosen.first().get("role").str() == "assistant" {
		prompt = say(p, pool.User, "") // otherwise chosen begins with it
	} else if p.str() == chosen.first().get("content").str() {
		p.taken()
	}
	active := say(firstPresent(v.get("chosen"), v.get("completion")), pool.Assistant, prompt)
	switch rejected := v.get("rejected"); {
	case rejected.is(arrayKind) && prompt == "":
		o.other(rejected)
	case rejected.kind() > nullKind:
		say(rejected, pool.Assistant, prompt)
	}
	return active
}

func (o *openAI) first() string {
	if len(o.t.records) == 0 {
		return ""
	}
	return o.t.records[0].id
}

func (o *openAI) emit(v value, active string) error {
	in := &record.Incoming{Conversation: firstOf(o.id, o.t.contentID(v))}
	o.r.about(in, v)
	return o.t.emit(in, active)
}

// list reads consecutive messages, below a record, and returns the id of the last.
func (o *openAI) list(list value, parent string) string {
	for m := range list.items() {
		parent = o.next(m, parent)
	}
	return parent
}

// next reads a message below a record and returns its id, or the record's if it is left out.
func (o *openAI) next(v value, parent string) string {
	o.n++
	if id := itoa(o.n); o.message(id, parent, v) {
		return id
	}
	return parent
}

// choices reads alternative answers.
func (o *openAI) choices(list value) {
	parent := o.t.last()
	for c := range list.items() {
		o.n++
		id := itoa(o.n)
		o.message(id, parent, c.get("message"))
		if m := o.t.message(id); m != nil {
			m.Meta.FinishReason = c.get("finish_reason").str()
		}
	}
}

// other reads the list of the answer that was not preferred: the beginning that it shares with the list before is the same.
func (o *openAI) other(list value) {
	shared := len(o.t.records)
	parent, same, i := "", true, 0
	for v := range list.items() {
		o.n++
		id := itoa(o.n)
		m := openAIMessage(v, id)
		if same = same && i < shared && m != nil && o.t.records[i].message != nil && poolstore.Words(m) == poolstore.Words(o.t.records[i].message); same {
			parent = o.t.records[i].id
			o.r.duplicated()
			keepAgain([]*chatctx.Message{o.t.records[i].message}, []*chatctx.Message{m})
			if said := o.r.sieve(); said.all(m) && said.rest(v) == nil {
				v.taken()
			}
			i++
			continue
		}
		if o.message(id, parent, v) {
			parent = id
		}
	}
}

// message adds a message. It returns false for one that is left out.
func (o *openAI) message(id, parent string, v value) bool {
	at := o.at.in("message " + id)
	m := openAIMessage(v, id)
	if m == nil {
		o.t.skip(at, "", "", "%s that is not a message is left out", v.kind())
		return false
	}
	for i := range m.Calls {
		if len(m.Calls[i].Arguments) > 0 && m.Calls[i].Arguments[0] == '"' {
			o.r.warn(at, "the arguments of the call %s are not JSON; they are kept as text", show.Clip(m.Calls[i].ID, 60))
		}
	}
	m.Content = o.files.into(m.Content)
	o.r.whole(at, v, m)
	o.t.add(at, id, parent, m)
	return true
}

// typedContent adds the content of a message. Lists of LLaMA-Factory's have the model's thoughts and calls among the parts, each with its text in value.
func typedContent(m *chatctx.Message, content value, id string) {
	if !content.is(arrayKind) {
		m.Content = append(m.Content, contentParts(content)...)
		return
	}
	for part := range content.items() {
		said := part.get("value")
		switch part.get("type").str() {
		case "reasoning":
			if said.is(stringKind) {
				m.Content = append(m.Content, pool.Part{Type: pool.ThinkingPart, Text: said.str()})
				continue
			}
		case "tool_call":
			if _, ok := valueCalls(m, said, id); ok {
				continue
			}
		}
		m.Content = append(m.Content, itemParts(part)...)
	}
}

// openAIMessage reads a message, nil for anything else.
func openAIMessage(v value, id string) *chatctx.Message {
	role := v.get("role").str()
	if role == "" {
		return nil
	}
	if role == "tool" || role == "function" {
		m := toolResult(v.get("tool_call_id").str(), v.get("name").str(), contentParts(v.get("content")))
		return m
	}
	m := &chatctx.Message{}
	roleOf(m, role)
	if text := firstOf(v.get("reasoning_content").str(), v.get("reasoning").str()); text != "" {
		m.Content = append(m.Content, pool.Part{Type: pool.ThinkingPart, Text: text})
	}
	typedContent(m, v.get("content"), id)
	if s := v.get("refusal").str(); s != "" {
		m.Content = append(m.Content, pool.Part{Type: "refusal", Text: s, Raw: object("refusal", s)})
	}
	if m.Role != pool.Assistant {
		return m
	}
	for tc := range v.get("tool_calls").items() {
		f := firstPresent(tc.get("function"), tc.get("custom"), tc)
		call, _ := newCall(tc.get("id").str(), f.get("name").str(), firstPresent(f.get("arguments"), f.get("input")))
		call.Provider, call.Raw = openAIProvider, rawBeyond(tc, keys("id", "type", "function", "index"))
		addCall(m, call, id)
	}
	if f := v.get("function_call"); f.is(objectKind) {
		call, _ := newCall("", f.get("name").str(), f.get("arguments"))
		addCall(m, call, id)
	}
	return m
}
