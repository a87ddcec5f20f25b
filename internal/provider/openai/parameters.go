package openai

import (
	"sort"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/provider/bodies"
)

// Model says what a model accepts, according to its name.
type Model struct {
	Name     string
	OpenAI   bool // it is one of OpenAI's own
	Reasons  bool // it thinks, so it accepts an effort and no sampling
	NoSystem bool // it accepts no system message
	version  float64
}

// ParseModel returns the Model of a name, with or without a provider in front.
func ParseModel(name string) Model {
	m := Model{Name: name}
	short := strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	short = strings.TrimPrefix(short, "ft:")
	number, isGPT := strings.CutPrefix(short, "gpt-")
	switch {
	case isGPT && !strings.HasPrefix(number, "oss"):
		m.OpenAI = true
		end := strings.IndexFunc(number, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		if end < 0 {
			end = len(number)
		}
		m.version, _ = strconv.ParseFloat(number[:end], 64)
		m.Reasons = m.version >= 5 && !strings.Contains(number, "chat")
	case len(short) >= 2 && short[0] == 'o' && short[1] >= '1' && short[1] <= '9':
		m.OpenAI, m.Reasons = true, true
		m.NoSystem = strings.HasPrefix(short, "o1-mini") || strings.HasPrefix(short, "o1-preview")
	case strings.HasPrefix(short, "codex-"), strings.HasPrefix(short, "computer-use-"):
		m.OpenAI, m.Reasons = true, true
	case strings.HasPrefix(short, "chatgpt-"):
		m.OpenAI = true
	}
	return m
}

// Effort returns the word for how much to think, "" for none; why says why it is left out.
func (m Model) Effort(t *adapter.Thinking) (word, why string) {
	switch {
	case t == nil:
		return "", ""
	case m.OpenAI && !m.Reasons:
		if t.Off {
			return "", ""
		}
		return "", m.Name + " does not think"
	case !t.Off:
		return adapter.Effort(t), ""
	case m.version >= 5.1:
		return "none", ""
	case m.version >= 5:
		return "minimal", ""
	case m.Reasons:
		return "", m.Name + " always thinks"
	}
	return "", ""
}

func profileNames() []string {
	var names []string
	for n := range Profiles {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// parameters sets all fields except the history.
func (r *request) parameters() {
	s, f := r.settings, &r.body.Fields
	f.Text("model", r.model.Name)
	if s.MaxTokens > 0 {
		name := "max_tokens"
		if r.model.OpenAI {
			name = "max_completion_tokens"
		}
		f.Int(name, s.MaxTokens)
	}
	Sampling(r.Conversation, s, r.model, f)
	r.stop()
	effort, why := r.model.Effort(s.Thinking)
	if effort != "" && r.model.version >= 5.4 && len(r.body.Tools) > 0 {
		effort, why = "", r.model.Name+" takes no effort beside tools here; the provider "+adapter.Responses+" does"
	}
	if why != "" {
		r.NoteAll("thinking left out: %s", why)
	}
	if effort != "" {
		if why := bodies.Crowds(s); why != "" {
			r.NoteAll("%s", why)
		}
		f.Text("reasoning_effort", effort)
	}
	if s.Format != nil {
		f.Put("response_format", r.format())
	}
	if len(r.body.Tools) > 0 && s.Parallel != nil {
		f.Bool("parallel_tool_calls", *s.Parallel)
	}
	if c := bodies.Choose(r.Conversation, s); c != nil {
		r.choice(c)
	}
	bodies.Apply(s, f)
}

// Sampling sets temperature and top_p as far as a model accepts them.
func Sampling(c *adapter.Conversation, s *adapter.Settings, m Model, f *jsontree.Members) {
	for _, p := range []struct {
		name  string
		value *float64
		most  float64
	}{{"temperature", s.Temperature, 2}, {"top_p", s.TopP, 1}} {
		switch {
		case p.value == nil:
		case m.Reasons && *p.value != 1:
			c.Note(chatctx.ID{}, "%s left out: %s takes only 1", p.name, m.Name)
		case *p.value > p.most:
			c.Note(chatctx.ID{}, "%s %g: no more is taken", p.name, p.most)
			f.Float(p.name, p.most)
		default:
			f.Float(p.name, *p.value)
		}
	}
}

func (r *request) stop() {
	stop := r.settings.Stop
	if len(stop) > 0 && r.model.Reasons {
		r.NoteAll("stop left out: %s takes none", r.model.Name)
		return
	}
	if len(stop) > 4 {
		r.NoteAll("only the first 4 texts of stop are taken")
		stop = stop[:4]
	}
	if len(stop) > 0 {
		r.body.Fields.Texts("stop", stop)
	}
}

func (r *request) format() jsontree.Members {
	format := r.settings.Format
	if format.Schema == nil {
		return jsontree.OneText("type", "json_object")
	}
	schema := jsontree.OneText("name", format.Name)
	schema.Set("schema", format.Schema)
	if format.Strict != nil {
		schema.Bool("strict", *format.Strict)
	}
	o := jsontree.OneText("type", "json_schema")
	o.Put("json_schema", schema)
	return o
}

func (r *request) choice(c *adapter.Choice) {
	if c.Mode != "tool" {
		r.body.Fields.Text("tool_choice", c.Mode)
		return
	}
	o := jsontree.OneText("type", "function")
	o.Put("function", jsontree.OneText("name", c.Tool))
	r.body.Fields.Put("tool_choice", o)
}
