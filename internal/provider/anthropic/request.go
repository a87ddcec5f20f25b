// Package anthropic talks to Claude with Anthropic's Messages API.
package anthropic

import (
	"cmp"
	"slices"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/internal/provider/binding"
	"github.com/chatctx/chatctx/internal/provider/bodies"
	"github.com/chatctx/chatctx/pool"
)

// Adapter makes bodies of the Messages API.
//
// Consecutive messages of one role stay separate: the API joins them itself, so what was sent keeps its bytes. With the setting cache (true by default) there
// are at most four breakpoints: after the system prompt, after the summary, at the prune boundary, and the API's own at the end.
var Adapter adapter.Adapter[*Body] = adapter.Provider[*request, *Body]{Rules: &rules, Open: open, Render: render}

var rules = adapter.Rules{
	Provider: Provider,
	Parameters: []string{adapter.Temperature, adapter.TopP, adapter.MaxTokens, adapter.Stop, adapter.ThinkingKey, adapter.ResponseFormat,
		adapter.ToolChoice, adapter.ParallelCalls},
	IDs:   adapter.Form{Extra: "_-", Max: 256},
	Tools: adapter.Form{Extra: "_-", Max: 128},
	Media: adapter.MediaRules{
		Images:     []string{"image/jpeg", "image/png", "image/gif", "image/webp"},
		ImageBytes: 7_500_000, // 10 MB in base64
		ImageSide:  8000, Many: 20, ManySide: 2000,
		Documents: []string{"application/pdf", "text/plain"},
		FileBytes: 22_000_000, Bytes: 22_000_000, // 32 MB of body
		URLs: true, FileURLs: true, InResults: true,
	},
}

// open begins a request with the rules for its settings.
func open(s *adapter.Settings) (*request, *adapter.Rules, error) {
	r := &request{settings: s, model: adapter.BareModel(s, Provider)}
	r.claude = parseModel(r.model)
	own := rules
	own.Thinking, own.Raw, own.Prefill = r.thinking, serverBlock, r.prefill
	return r, &own, nil
}

func render(r *request, c *adapter.Conversation) *Body {
	r.Conversation = c
	r.body = &Body{size: bodies.SizeOf(r.Conversation)}
	r.tools()
	r.system()
	for _, t := range r.Turns {
		if r.claude.binds() {
			r.unbind(t)
		}
		r.turn(t)
	}
	r.parameters()
	r.body.names = r.ToolNames()
	return r.body
}

// request is a body in the making.
type request struct {
	*adapter.Conversation
	settings *adapter.Settings
	model    string
	claude   model
	body     *Body
	chain    *binding.Chain // of the body so far; nil until it is needed
	chained  int            // messages in it
}

// thinking returns why a thinking part cannot be sent back, "" if it can.
func (r *request) thinking(p *pool.Part, m *pool.Message) string {
	provider, model := cmp.Or(p.Provider, m.Meta.Provider), cmp.Or(p.Model, m.Meta.Model)
	switch {
	case provider != Provider:
		return "it is not from " + Provider
	case p.Signature == "" && p.Redacted == "":
		return "it has no signature"
	case model != "" && adapter.Undated(model) != adapter.Undated(r.model):
		return "it is from " + model
	}
	return ""
}

// unbind removes thinking from a turn if anything before it has changed since, because the API would refuse it.
func (r *request) unbind(t *adapter.Turn) {
	var kept []adapter.Item
	for _, i := range t.Items {
		if i.Thinking == nil {
			kept = append(kept, i)
		}
	}
	if len(kept) == len(t.Items) || r.bound(t) {
		return
	}
	t.Items = kept
	r.Note(t.Message, "thinking left out: what stood before it when it was thought is not what stands there now")
}

// bound reports whether a reply answers the body so far. If the reply has no record of that, it counts as bound, unless it was imported or a summary stands for
// what it answered.
func (r *request) bound(t *adapter.Turn) bool {
	sum := binding.BoundTo(t.From)
	if sum == "" {
		return t.From.Source == nil && !r.Turns[0].Summary
	}
	if r.chain == nil {
		r.chain = binding.NewChain((&Body{Tools: r.body.Tools, System: r.body.System}).Prefix()...)
	}
	for ; r.chained < len(r.body.Messages); r.chained++ {
		r.chain.Add((&Body{Messages: r.body.Messages[r.chained : r.chained+1]}).Prefix()[0].Bytes)
	}
	return sum == r.chain.Sum()
}

// prefill reports whether the model continues the words of the last turns, which the API joins.
func (r *request) prefill(turns []*adapter.Turn) bool {
	if !r.claude.known || !r.claude.before(4, 6) || r.settings.Thinking != nil || r.settings.Extra["thinking"] != nil {
		return false
	}
	for n := len(turns) - 1; n >= 0 && turns[n].Role == pool.Assistant && len(turns[n].Results) == 0; n-- {
		for _, i := range turns[n].Items {
			if i.Thinking != nil {
				return false
			}
		}
	}
	last := turns[len(turns)-1].Items
	text := last[len(last)-1].Text
	return text != "" && !endsInSpace(text)
}

func (r *request) mark() *CacheControl {
	if !r.settings.Cache {
		return nil
	}
	return &CacheControl{TTL: r.settings.TTL}
}

// tools sets the tools. The API requires definitions of those that the history calls, so a draft without any tools gets them, but they may not be called.
func (r *request) tools() {
	for _, f := range r.Functions(r.settings) {
		r.body.Tools = append(r.body.Tools, Tool{Function: f})
	}
	if len(r.body.Tools) > 0 {
		return
	}
	for _, t := range r.Turns {
		for _, i := range t.Items {
			if i.Call != nil && !r.defined(i.Call.Name) {
				r.body.Tools = append(r.body.Tools, Tool{Function: adapter.Function{Tool: adapter.Tool{Name: i.Call.Name, Schema: anyInput}}})
			}
		}
	}
	if len(r.body.Tools) > 0 {
		r.body.past = true
		r.NoteAll("the tools that were called are not defined: they are named, and may not be called")
	}
}

func (r *request) defined(name string) bool {
	return slices.ContainsFunc(r.body.Tools, func(t Tool) bool { return t.Name == name })
}

func (r *request) system() {
	for _, text := range r.System {
		r.body.System = append(r.body.System, Text{Text: text})
	}
	if n := len(r.body.System); n > 0 {
		r.body.System[n-1].Cache = r.mark()
	} else if n := len(r.body.Tools); n > 0 && r.body.Tools[n-1].Raw == nil {
		r.body.Tools[n-1].Cache = r.mark()
	}
}

func (r *request) turn(t *adapter.Turn) {
	m := Message{Role: string(t.Role), from: t.Message}
	for _, i := range t.Items {
		if i.Call == nil {
			m.Content = append(m.Content, blockOf(i))
		}
	}
	for _, i := range t.Items {
		if i.Call != nil { // only calls may come after a call
			m.Content = append(m.Content, Block{Type: "tool_use", ID: i.Call.ID, Name: i.Call.Name, Input: i.Call.Arguments})
		}
	}
	r.body.Messages = append(r.body.Messages, m)
	if len(t.Results) > 0 {
		answers := Message{Role: "user"}
		for _, a := range t.Results {
			answers.Content = append(answers.Content, result(a))
			answers.from = a.Message
		}
		r.body.Messages = append(r.body.Messages, answers)
	}
	if t.Summary || t.Cache {
		r.breakpoint(t.Summary)
	}
}

// breakpoint marks the last block that may be marked. There is one at the prune boundary: a later one replaces it.
func (r *request) breakpoint(summary bool) {
	mark := r.mark()
	if mark == nil {
		return
	}
	content := r.body.Messages[len(r.body.Messages)-1].Content
	for n := len(content) - 1; n >= 0; n-- {
		b := &content[n]
		if b.Type == "thinking" || b.Type == "redacted_thinking" || b.Raw != nil {
			continue
		}
		if !summary {
			if r.body.pruned != nil {
				r.body.pruned.Cache = nil
			}
			r.body.pruned = b
		}
		b.Cache = mark
		return
	}
}

func blockOf(i adapter.Item) Block {
	switch {
	case i.Media != nil:
		return Block{Type: i.Media.Kind, Media: i.Media}
	case i.Thinking != nil && i.Thinking.Redacted != "":
		return Block{Type: "redacted_thinking", Data: i.Thinking.Redacted}
	case i.Thinking != nil:
		return Block{Type: "thinking", Text: i.Thinking.Text, Signature: i.Thinking.Signature}
	case i.Raw != nil:
		return Block{Type: i.Raw.Type, Raw: i.Raw.Raw}
	}
	return Block{Type: "text", Text: i.Text}
}

func result(a *adapter.Result) Block {
	b := Block{Type: "tool_result", ID: a.Call.ID, IsError: a.Error}
	for _, i := range a.Items {
		b.Content = append(b.Content, blockOf(i))
	}
	return b
}
