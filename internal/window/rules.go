package window

import (
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/pool"
)

// ruleFits reports whether a rule is for such an output.
func ruleFits(r *enhancer.Rule, tool string, kind enhancer.Kind) bool {
	return (r.Tool == "" || r.Tool == tool) && (r.Kind == "" || r.Kind == kind)
}

// OutputRules returns the built-in rules for outputs, one for each kind except Binary, which is put aside. They are made for outputs of up to LargeOutput bytes
// and take linear time for any length.
func OutputRules() []enhancer.Rule {
	return []enhancer.Rule{
		{Name: "json", Kind: enhancer.JSON, Apply: shortenJSON},
		{Name: "yaml", Kind: enhancer.YAML, Apply: shortenYAML},
		{Name: "log", Kind: enhancer.Log, Apply: shortenLog},
		{Name: "error", Kind: enhancer.Error, Apply: shortenError},
		{Name: "words", Kind: enhancer.Text, Apply: shortenText},
	}
}

var outputRules = OutputRules()

// shorten applies the first rule that fits an output and makes it shorter, and returns the rule's name; "" if there is none.
func shorten(rules []enhancer.Rule, tool string, kind enhancer.Kind, content string) (text, rule string) {
	for i := range rules {
		if r := &rules[i]; ruleFits(r, tool, kind) {
			if next := r.Apply(content); len(next) < len(content) {
				return next, r.Name
			}
		}
	}
	return content, ""
}

// count adds what a rule did to a message.
func (w *Window) count(rule string, before, after int) {
	i := slices.IndexFunc(w.rules, func(f enhancer.RuleFigures) bool { return f.Name == rule })
	if i < 0 {
		i = len(w.rules)
		w.rules = append(w.rules, enhancer.RuleFigures{Name: rule})
	}
	f := &w.rules[i]
	f.Times, f.Before, f.After = f.Times+1, f.Before+before, f.After+after
}

// shortenTexts applies Options.TextRules to the answers between two indexes until goal tokens are cleared, and returns the position of the last one that it
// changed.
func (s *steps) shortenTexts(from, to, goal int) int {
	cleared, last := 0, 0
	for i := from; i < to && cleared < goal; i++ {
		if saved := s.shortenAnswer(s.d.Messages[i]); saved > 0 {
			cleared += saved
			last = s.position(i + 1)
		}
	}
	return last
}

// textsTo applies the text rules to the answers up to a position.
func (s *steps) textsTo(position int) {
	if position > 0 {
		s.shortenTexts(0, s.index(position), int(^uint(0)>>1))
	}
}

// shortenAnswer applies the text rules to an answer's texts, one after the other, and returns the tokens that this saves.
func (s *steps) shortenAnswer(m *chatctx.DraftMessage) int {
	if m.Pinned || m.Kind != "" || m.Role != pool.Assistant {
		return 0
	}
	saved := 0
	for i := range s.o.TextRules {
		rule := &s.o.TextRules[i]
		message := *m.Message
		message.Content = slices.Clone(m.Content)
		changed := false
		for k := range message.Content {
			if p := &message.Content[k]; p.Type == pool.TextPart {
				if next := rule.Apply(p.Text); len(next) < len(p.Text) {
					*p, changed = pool.Part{Type: pool.TextPart, Text: next}, true
				}
			}
		}
		before := s.w.of(s.d, m)
		if !changed {
			continue
		}
		if after := s.w.Counter.Message(&message, s.d.Artifact); after < before {
			s.w.replace(m, &message, after)
			s.w.count(rule.Name, before, after)
			note(s.d, "tools", m, enhancer.Pruned, "shortened by the rule "+rule.Name, before)
			saved += before - after
		}
	}
	return saved
}
