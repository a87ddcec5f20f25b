package anthropic

import (
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/provider/bodies"
	"github.com/chatctx/chatctx/pool"
)

// model is the version of a model by its name. Names that are not Claude's (of other servers with this protocol) are not known.
type model struct {
	known        bool
	major, minor int
}

// parseModel reads the version in names such as claude-3-5-sonnet-20241022 and claude-opus-4-6. A Claude without a version counts as the newest.
func parseModel(name string) model {
	name = strings.ToLower(name)
	if i := strings.LastIndexAny(name, "/"); i >= 0 {
		name = name[i+1:]
	}
	if !strings.Contains(name, "claude") {
		return model{}
	}
	m := model{known: true, major: 99}
	var found []int
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '.' || r == '@' || r == ':' }) {
		if n, err := strconv.Atoi(word); err == nil && len(word) <= 2 {
			found = append(found, n)
		} else if len(found) > 0 {
			break
		}
	}
	if len(found) > 0 {
		m.major = found[0]
	}
	if len(found) > 1 {
		m.minor = found[1]
	}
	return m
}

func (m model) before(major, minor int) bool {
	return m.major < major || m.major == major && m.minor < minor
}

// binds reports whether the model accepts thinking back only if everything before it is unchanged: Claude from 5.1 on.
func (m model) binds() bool { return m.known && !m.before(5, 1) }

// maxTokens returns the default limit of a reply; the API requires a number.
func (m model) maxTokens() int64 {
	switch {
	case !m.known:
		return 8192
	case m.before(3, 5):
		return 4096
	case m.before(3, 7):
		return 8192
	}
	return 32000
}

// parameters sets all fields except the history.
func (r *request) parameters() {
	s, f := r.settings, &r.body.Fields
	f.Text("model", r.model)
	limit := s.MaxTokens
	thinking, effort := r.thinkingMode()
	if limit == 0 {
		limit = r.claude.maxTokens()
		if thinking == "enabled" && limit-limit/4 < s.Thinking.Tokens {
			limit = s.Thinking.Tokens + 8192
		}
	}
	f.Int("max_tokens", limit)
	budget := r.budget(&thinking)
	r.putThinking(thinking, effort, budget)
	r.sampling(thinking != "")
	if len(s.Stop) > 0 {
		if stop := notBlank(s.Stop); len(stop) > 0 {
			f.Texts("stop_sequences", stop)
		}
	}
	r.choice(thinking != "")
	bodies.Apply(s, f, "output_config")
	if mark := r.mark(); mark != nil && f.Get("cache_control") == nil {
		f.Set("cache_control", mark.json())
	}
}

func notBlank(list []string) []string {
	var kept []string
	for _, s := range list {
		if strings.TrimSpace(s) != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

// leastThinking is the smallest number of thinking tokens that the API accepts.
const leastThinking = 1024

// budget returns how many tokens the model may think. If max_tokens has no room for them beside an answer, it turns thinking off.
func (r *request) budget(mode *string) int64 {
	switch *mode {
	case "adaptive":
		if why := bodies.Crowds(r.settings); why != "" {
			r.NoteAll("%s", why)
		}
	case "enabled":
		budget, why := r.settings.Thinking.Within(max(r.settings.Thinking.Tokens, leastThinking), r.settings.MaxTokens)
		if budget < leastThinking {
			r.NoteAll("thinking left out: it takes %d tokens or more beside those of the answer, and max_tokens is %d", leastThinking, r.settings.MaxTokens)
			*mode = ""
		} else if why != "" {
			r.NoteAll("%s", why)
		}
		return budget
	}
	return 0
}

// thinkingMode returns how the model is told to think: adaptive with an effort, enabled with a number of tokens, or "" for not at all.
func (r *request) thinkingMode() (mode, effort string) {
	t := r.settings.Thinking
	if t == nil || t.Off || r.settings.Extra["thinking"] != nil {
		return "", ""
	}
	switch {
	case r.claude.known && r.claude.before(3, 7):
		r.NoteAll("thinking left out: %s does not think", r.model)
		return "", ""
	case r.claude.known && !r.claude.before(4, 6):
		return "adaptive", adapter.Effort(t)
	case !r.loopThinks():
		r.NoteAll("thinking left out: the turn that the tools are called in began without it")
		return "", ""
	}
	return "enabled", ""
}

// loopThinks reports whether the turns of the last results began with thinking: all those back to the last answer without a call, if a user message comes
// before them. The API joins an answer to the calls right after it.
func (r *request) loopThinks() bool {
	joined := false
	for n := len(r.Turns) - 1; n >= 0; n-- {
		t := r.Turns[n]
		switch afterUser := n == 0 || r.Turns[n-1].Role != pool.Assistant; {
		case t.Role != pool.Assistant:
			joined = false
		case len(t.Results) == 0 && !joined:
			return true
		case afterUser && t.Items[0].Thinking == nil:
			return false
		default:
			joined = !afterUser && len(r.Turns[n-1].Results) == 0
		}
	}
	return true
}

func (r *request) putThinking(mode, effort string, budget int64) {
	f, config := &r.body.Fields, jsontree.Members{}
	switch mode {
	case "adaptive":
		f.Put("thinking", jsontree.OneText("type", mode))
		config.Text("effort", effort)
	case "enabled":
		t := jsontree.OneText("type", mode)
		t.Int("budget_tokens", budget)
		f.Put("thinking", t)
	}
	if format := r.settings.Format; format != nil && format.Schema != nil {
		schema := jsontree.OneText("type", "json_schema")
		schema.Set("schema", format.Schema)
		config.Put("format", schema)
	} else if format != nil {
		r.NoteAll("response_format left out: %s takes a schema, not any JSON", Provider)
	}
	if len(config) > 0 {
		f.Put("output_config", config)
	}
}

// sampling sets temperature and top_p as far as the model accepts them.
func (r *request) sampling(thinking bool) {
	s, f := r.settings, &r.body.Fields
	temperature, topP := s.Temperature, s.TopP
	fixed := r.claude.known && !r.claude.before(4, 7)
	if temperature != nil && *temperature > 1 {
		one := 1.0
		temperature = &one
		r.NoteAll("temperature 1: %s takes no more", Provider)
	}
	if temperature != nil && *temperature != 1 && (fixed || thinking) {
		temperature = nil
		r.NoteAll("temperature left out: %s takes only 1 here", r.model)
	}
	if topP != nil && (*topP > 1 || *topP < 0.99 && fixed || *topP < 0.95 && thinking) {
		topP = nil
		r.NoteAll("top_p left out: %s does not take it here", r.model)
	}
	if temperature != nil && topP != nil && r.claude.known && !r.claude.before(4, 1) {
		topP = nil
		r.NoteAll("top_p left out: %s does not take it beside temperature", r.model)
	}
	if temperature != nil {
		f.Float("temperature", *temperature)
	}
	if topP != nil {
		f.Float("top_p", *topP)
	}
}

func (r *request) choice(thinking bool) {
	s := r.settings
	choice := bodies.Choose(r.Conversation, s)
	var o jsontree.Members
	switch {
	case r.body.past:
		o = jsontree.OneText("type", "none")
	case len(r.body.Tools) == 0:
		return
	case choice != nil && (choice.Mode == "required" || choice.Mode == "tool") && (thinking || s.Extra["thinking"] != nil):
		r.NoteAll("tool_choice auto: while it thinks the model cannot be made to call a tool")
		o = jsontree.OneText("type", "auto")
	case choice != nil && choice.Mode == "tool":
		o = jsontree.OneText("type", "tool")
		o.Text("name", choice.Tool)
	case choice != nil && choice.Mode == "required":
		o = jsontree.OneText("type", "any")
	case choice != nil:
		o = jsontree.OneText("type", choice.Mode)
	case s.Parallel != nil && !*s.Parallel:
		o = jsontree.OneText("type", "auto")
	default:
		return
	}
	if s.Parallel != nil && !*s.Parallel && string(o.Get("type")) != `"none"` {
		o.Bool("disable_parallel_tool_use", true)
	}
	r.body.Fields.Put("tool_choice", o)
}
