// Package gemini talks to Google's models with generateContent.
package gemini

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/provider/bodies"
	"github.com/chatctx/chatctx/pool"
)

// Adapter makes bodies of generateContent and streamGenerateContent. These have the model in their address, so the body has it in Model.
//
// From Gemini 3 on the first call of each turn needs a thought signature. Calls without one of this model get the one that Google provides for that.
var Adapter adapter.Adapter[*Body] = adapter.Provider[*request, *Body]{Rules: &rules, Open: open, Render: render}

// skipSignature stands for a missing signature of a call.
var skipSignature = base64.StdEncoding.EncodeToString([]byte("skip_thought_signature_validator"))

var rules = adapter.Rules{
	Provider:   Provider,
	Parameters: []string{adapter.Temperature, adapter.TopP, adapter.MaxTokens, adapter.Stop, adapter.ThinkingKey, adapter.ResponseFormat, adapter.ToolChoice},
	IDs:        adapter.Form{Extra: "_-", Max: 64},
	Tools:      adapter.Form{Extra: "_.:-", Max: 64, Letter: true},
	UserFirst:  true, UserBetween: true, CallOrder: true,
	Media: adapter.MediaRules{
		Images:    []string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"},
		Documents: []string{"application/pdf"},
		Own:       []string{"https://generativelanguage.googleapis.com/", "gs://", "https://www.youtube.com/watch", "https://youtu.be/"},
		InErrors:  true,
	},
}

// open begins a request with the rules for its settings.
func open(s *adapter.Settings) (*request, *adapter.Rules, error) {
	r := &request{settings: s, model: strings.TrimPrefix(adapter.BareModel(s, Provider), "models/")}
	r.version = version(r.model)
	own := rules
	own.Thinking = r.thinking
	own.Media.Bytes = 14_000_000 // 20 MB of body
	if own.Media.InResults = r.version >= 3; own.Media.InResults {
		own.Media.Bytes = 70_000_000 // 100 MB
	}
	return r, &own, nil
}

func render(r *request, c *adapter.Conversation) *Body {
	r.Conversation = c
	r.body = &Body{Model: r.model, Functions: r.Tools, Tools: r.settings.ExtraTools(), System: r.System, size: bodies.SizeOf(r.Conversation)}
	for _, t := range r.Turns {
		r.turn(t)
	}
	r.parameters()
	r.body.names = r.ToolNames()
	return r.body
}

var versions = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`gemini-(\d+(?:\.\d+)?)`) })

// version returns the version of a Gemini, 0 for other models. A Gemini without a version in its name counts as the newest.
func version(model string) float64 {
	if m := versions().FindStringSubmatch(model); m != nil {
		v, _ := strconv.ParseFloat(m[1], 64)
		return v
	}
	if strings.Contains(model, "gemini") {
		return 99
	}
	return 0
}

// request is a body in the making.
type request struct {
	*adapter.Conversation
	settings *adapter.Settings
	model    string
	version  float64
	body     *Body
}

// thinking returns why a thought cannot be sent back, "" if it can.
func (r *request) thinking(p *pool.Part, _ *pool.Message) string {
	switch {
	case p.Provider != Provider:
		return "it is not from " + Provider
	case !r.own(p.Provider, p.Model, p.Signature):
		return "it has no signature of " + r.model
	case strings.TrimSpace(p.Text) == "":
		return "it is empty"
	}
	return ""
}

// own reports whether a signature is from this model.
func (r *request) own(provider, model, signature string) bool {
	if provider != Provider || model != "" && model != r.model || signature == "" {
		return false
	}
	_, err := base64.StdEncoding.DecodeString(signature)
	return err == nil
}

func (r *request) turn(t *adapter.Turn) {
	c := Content{Role: "user", from: t.Message}
	if t.Role == pool.Assistant {
		c.Role = "model"
	}
	called := false
	for _, i := range t.Items {
		p := r.part(i)
		if i.Call != nil && !called && r.version >= 3 && p.Signature == "" {
			p.Signature = skipSignature
			r.Note(t.Message, "call %s has no thought signature of %s: the one for that was put in", i.Call.Call.ID, r.model)
		}
		called = called || i.Call != nil
		c.Parts = append(c.Parts, p)
	}
	r.body.Contents = append(r.body.Contents, c)
	if len(t.Results) == 0 {
		return
	}
	answers := Content{Role: "user"}
	for _, a := range t.Results {
		answers.Parts = append(answers.Parts, response(a))
		answers.from = a.Message
	}
	r.body.Contents = append(r.body.Contents, answers)
}

func (r *request) part(i adapter.Item) Part {
	switch {
	case i.Media != nil:
		return Part{Media: i.Media}
	case i.Thinking != nil:
		return Part{Text: i.Thinking.Text, Thought: true, Signature: i.Thinking.Signature}
	case i.Call != nil:
		return Part{Call: &FunctionCall{ID: i.Call.ID, Name: i.Call.Name, Args: i.Call.Arguments}, Signature: r.signature(i.Call.Call)}
	}
	p := Part{Text: i.Text}
	if f := i.From; f != nil && r.own(f.Provider, f.Model, f.Signature) {
		p.Signature = f.Signature
	}
	return p
}

// signature returns a call's own signature if it is from this model, else "".
func (r *request) signature(c *pool.Call) string {
	var v struct {
		Signature string `json:"thoughtSignature"`
	}
	if len(c.Raw) == 0 || json.Unmarshal(c.Raw, &v) != nil || !r.own(c.Provider, c.Model, v.Signature) {
		return ""
	}
	return v.Signature
}

func response(a *adapter.Result) Part {
	f := &FunctionResponse{ID: a.Call.ID, Name: a.Call.Name, Response: a.JSON}
	var fields jsontree.Members
	if a.Error {
		fields.Text("error", adapter.JoinTexts(a.Items, "\n"))
		f.Response = fields.Bytes()
	} else if f.Response == nil {
		fields.Text("result", adapter.JoinTexts(a.Items, "\n"))
		f.Response = fields.Bytes()
	}
	for _, i := range a.Items {
		if i.Media != nil {
			f.Media = append(f.Media, i.Media)
		}
	}
	return Part{Response: f}
}
