// Package openai talks to models with OpenAI's Chat Completions API, also on other servers with its protocol.
package openai

import (
	"cmp"
	"strings"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/internal/provider/bodies"
	"github.com/chatctx/chatctx/pool"
)

// Adapter makes bodies of the Chat Completions API. The setting profile names the deviations of another server; see Profiles.
var Adapter adapter.Adapter[*Body] = adapter.Provider[*request, *Body]{Rules: &rules, Open: open, Render: render}

// Profile says how a server deviates from OpenAI's own.
type Profile struct {
	IDs       adapter.Form
	Strict    bool // user and assistant must alternate, with one system message at the beginning, and no user message after a tool's
	Reasoning bool // it requires reasoning_content back with calls
	Foreign   bool // whatever its name, the model is not OpenAI's
}

var ids = adapter.Form{Extra: "_-", Max: 40}

// Profiles are the possible values of the setting profile.
var Profiles = map[string]Profile{
	"openai":     {IDs: ids},
	"azure":      {IDs: ids},
	"compatible": {IDs: ids, Foreign: true}, // vLLM, LM Studio, llama.cpp …
	"openrouter": {IDs: ids},
	"deepseek":   {IDs: ids, Reasoning: true, Foreign: true},
	"mistral":    {IDs: adapter.Form{Max: 9, Exact: true}, Strict: true, Foreign: true},
	"strict":     {IDs: ids, Strict: true, Foreign: true},
}

var rules = adapter.Rules{
	Provider: Provider,
	Parameters: []string{adapter.Temperature, adapter.TopP, adapter.MaxTokens, adapter.Stop, adapter.ThinkingKey, adapter.ResponseFormat,
		adapter.ToolChoice, adapter.ParallelCalls},
	Tools:  adapter.Form{Extra: "_-", Max: 64},
	System: true,
	Media:  Media,
}

// Media are OpenAI's rules for images and documents, in both of its APIs.
var Media = adapter.MediaRules{
	Images:     []string{"image/png", "image/jpeg", "image/gif", "image/webp"},
	ImageBytes: 15_000_000, // 20 MB in base64
	Documents:  []string{"application/pdf"},
	FileBytes:  24_000_000, Bytes: 36_000_000, // 50 MB of body
	URLs: true,
}

// open begins a request with the rules for its settings.
func open(s *adapter.Settings) (*request, *adapter.Rules, error) {
	profile, ok := Profiles[s.Profile]
	if !ok && s.Profile != "" {
		return nil, nil, &adapter.SettingError{Key: "profile", Provider: Provider, Why: "knows only " + strings.Join(profileNames(), ", ")}
	}
	if s.Profile == "" {
		profile = Profiles["openai"]
	}
	r := &request{settings: s, profile: profile, model: ParseModel(adapter.BareModel(s, Provider))}
	if profile.Foreign {
		r.model.OpenAI, r.model.Reasons = false, false
	}
	own := rules
	own.IDs, own.Thinking = profile.IDs, r.thinking
	own.System = !profile.Strict && !r.model.NoSystem
	own.UserFirst = profile.Strict
	return r, &own, nil
}

func render(r *request, c *adapter.Conversation) *Body {
	r.Conversation = c
	r.body = &Body{Tools: r.Functions(r.settings), size: bodies.SizeOf(r.Conversation)}
	r.system()
	for _, t := range r.Turns {
		r.turn(t)
	}
	if r.profile.Strict {
		r.alternate()
	}
	r.parameters()
	r.body.names = r.ToolNames()
	return r.body
}

// request is a body in the making.
type request struct {
	*adapter.Conversation
	settings *adapter.Settings
	profile  Profile
	model    Model
	body     *Body
}

// thinking returns why thinking cannot be sent back, "" if it can. Only servers that require it get it, and only their own.
func (r *request) thinking(p *pool.Part, m *pool.Message) string {
	provider := cmp.Or(p.Provider, m.Meta.Provider)
	switch {
	case !r.profile.Reasoning:
		return "this API takes none back"
	case provider != Provider || len(m.Calls) == 0:
		return "only what came with calls goes back to where it is from"
	}
	return ""
}

// system puts the system texts into one message, since not every server accepts two.
func (r *request) system() {
	texts := r.System
	if r.settings.Format != nil && r.settings.Format.Schema == nil {
		texts = append(texts, adapter.AnswerJSON)
	}
	if len(texts) == 0 {
		return
	}
	role := "system"
	if r.model.NoSystem {
		role = "user"
		r.NoteAll("%s takes no system message: it is sent as a user message", r.model.Name)
	}
	r.add(Message{Role: role, Content: []Part{{Type: "text", Text: strings.Join(texts, "\n\n")}}})
}

func (r *request) add(m Message) { r.body.Messages = append(r.body.Messages, m) }

func (r *request) turn(t *adapter.Turn) {
	m := Message{Role: string(t.Role), from: t.Message}
	if t.Role != pool.Assistant {
		for _, i := range t.Items {
			m.Content = append(m.Content, part(i))
		}
		r.add(m)
		return
	}
	if text := adapter.JoinTexts(t.Items, "\n\n"); text != "" {
		m.Content = []Part{{Type: "text", Text: text}}
	}
	for _, i := range t.Items {
		switch {
		case i.Call != nil:
			c := Call{ID: i.Call.ID, Name: i.Call.Name, Arguments: string(i.Call.Arguments)}
			if r.own(i.Call.Provider, i.Call.Model) {
				c.Own = own(i.Call.Raw)
			}
			m.Calls = append(m.Calls, c)
		case i.Thinking != nil:
			m.Reasoning += i.Thinking.Text
		}
	}
	m.WithReasoning = r.profile.Reasoning && len(m.Calls) > 0
	if t.From != nil && r.own(t.From.Meta.Provider, t.From.Meta.Model) {
		m.Own = own(t.From.Meta.ProviderData[Provider])
	}
	r.add(m)
	for _, a := range t.Results {
		r.add(Message{Role: "tool", CallID: a.Call.ID, Content: []Part{{Type: "text", Text: a.Plain()}}, from: a.Message})
	}
}

func part(i adapter.Item) Part {
	switch {
	case i.Media == nil:
		return Part{Type: "text", Text: i.Text}
	case i.Media.Kind == pool.ImagePart:
		return Part{Type: "image_url", Media: i.Media}
	}
	return Part{Type: "file", Media: i.Media}
}

// alternate makes user and assistant alternate: it joins messages of one role, and puts an assistant message between a result and a user message.
func (r *request) alternate() {
	var list []Message
	for _, m := range r.body.Messages {
		if n := len(list); n > 0 {
			switch last := &list[n-1]; {
			case m.Role == last.Role && m.Role != "tool" && len(last.Calls) == 0:
				merge(last, m)
				continue
			case m.Role == "user" && last.Role == "tool":
				list = append(list, Message{Role: "assistant", Content: []Part{{Type: "text", Text: adapter.GoOn}}})
			}
		}
		list = append(list, m)
	}
	r.body.Messages = list
}

// merge appends a message to the one before it, joining single texts.
func merge(to *Message, m Message) {
	if len(to.Content) == 1 && len(m.Content) == 1 && to.Content[0].Type == "text" && m.Content[0].Type == "text" {
		to.Content = []Part{{Type: "text", Text: to.Content[0].Text + "\n\n" + m.Content[0].Text}}
	} else {
		to.Content = append(to.Content[:len(to.Content):len(to.Content)], m.Content...)
	}
	to.Calls = append(to.Calls, m.Calls...)
	if len(m.Own) > 0 {
		to.Own = m.Own
	}
	to.from = m.from
}
