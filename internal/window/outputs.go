package window

import (
	"context"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/pool"
)

// An output of up to SmallOutput bytes stays unchanged, one of up to LargeOutput is shortened, and a larger one is put aside.
const (
	SmallOutput = 2 << 10
	LargeOutput = 8 << 10
)

// Outputs returns an Enhancer that makes tool outputs smaller, by their kind, until the draft fits: first those before the kept tail, the oldest first, then
// the rest. From the first time on, outputs that come in are shortened at once if they are of middling size and would take about an eighth of the limit: so
// more messages stay, and the beginning of the requests changes less often. Before the tail a result's own compact summary replaces it. Small outputs stay,
// middling ones are shortened, and large or binary ones are put aside: a pointer names the artifact, and ReadArtifact reads it. Then Options.TextRules, if there are any, shorten old answers.
func Outputs(w *Window, o Options) enhancer.Enhancer {
	return enhancer.Func("tools", func(ctx context.Context, d *chatctx.Draft) error {
		if err := w.Measure(ctx, d); err != nil || w.Over(d) == 0 {
			return err
		}
		s := steps{ctx: ctx, w: w, d: d, o: o}
		names := toolNames(d.Messages)
		if s.marked(comingMark) == 0 {
			s.setMark(comingMark, s.position(unread(d.Messages)))
			s.coming(names)
		}
		kept := tail(d.Messages, s.keptBlocks())
		to := s.shrink(s.index(s.marked(outputsMark)), kept, names, true, w.goal(w.Over(d)))
		s.setMark(outputsMark, to)
		s.setMark(summariesMark, to)
		if goal := w.goal(w.Over(d)); len(o.TextRules) > 0 && goal > 0 {
			s.setMark(textsMark, s.shortenTexts(s.index(s.marked(textsMark)), kept, goal))
		}
		if over := w.Over(d); over > 0 {
			s.setMark(outputsMark, s.shrink(kept, len(d.Messages), names, false, over))
		}
		return nil
	})
}

// outputsTo makes the outputs up to a position smaller; up to the position summaries it uses their compact summary.
func (s *steps) outputsTo(position, summaries int, names []string) {
	if position > 0 {
		done := s.index(summaries)
		for i := range s.index(position) {
			s.shrinkOne(i, names[i], i < done, SmallOutput)
		}
	}
}

// coming shortens the outputs that came in since the draft first did not fit, the middling ones of more bytes than half the tokens of the limit. No ratio
// counts here: an output that was sent stays as it was sent.
func (s *steps) coming(names []string) {
	at := s.marked(comingMark)
	if at == 0 {
		return
	}
	for i := s.index(at); i < len(s.d.Messages); i++ {
		m := s.d.Messages[i]
		if isResult(m) && m.State != enhancer.Pruned && len(m.Result.Parts) == 0 && resultSize(m.Result) <= LargeOutput {
			s.shrinkOne(i, names[i], false, s.w.Limit()/2)
		}
	}
}

// shrink makes the outputs between two indexes smaller until goal tokens are cleared. It returns the position of the last one that it changed.
func (s *steps) shrink(from, to int, names []string, summaries bool, goal int) int {
	cleared, last := 0, 0
	for i := from; i < to && cleared < goal; i++ {
		if saved := s.shrinkOne(i, names[i], summaries, SmallOutput); saved > 0 {
			cleared += saved
			last = s.position(i + 1)
		}
	}
	return last
}

// shrinkOne makes a message smaller if it is an output of more than small bytes, and returns the tokens that this saves.
func (s *steps) shrinkOne(i int, tool string, summary bool, small int) int {
	m := s.d.Messages[i]
	if !isResult(m) || tool == ArtifactTool.Name {
		return 0
	}
	before := s.w.of(s.d, m)
	if len(m.Result.Parts) > 0 {
		return s.shrinkParts(m, tool, before)
	}
	f := smaller(s.o.Rules, tool, m.Result, summary, small)
	if f.rule == "" {
		return 0
	}
	after := tokens.PerMessage + s.w.Counter.Text(f.text)
	if after >= before || !s.keep(m, f.aside) {
		return 0
	}
	s.w.replace(m, withResult(m, f.text), after)
	s.w.count(f.rule, before, after)
	note(s.d, "tools", m, enhancer.Pruned, f.what, before)
	return before - after
}

// form is the text that stands for an output.
type form struct {
	text  string
	rule  string                            // "" means that nothing takes its place
	what  string                            // what was done
	aside func() (enhancer.Artifact, error) // the artifact that the text points to
}

// smaller returns the form of a result's text or JSON; of up to small bytes only a program's own rules shorten it.
func smaller(own []enhancer.Rule, tool string, r *pool.Result, summary bool, small int) form {
	if summary && r.CompactSummary != "" {
		return form{text: r.CompactSummary, rule: "compact summary", what: "its compact summary stands for it"}
	}
	content := r.Text
	if r.JSON != nil {
		content = string(r.JSON)
	}
	return smallerText(own, tool, content, r, small)
}

// smallerText is smaller for a text of an output. r may be nil.
func smallerText(own []enhancer.Rule, tool, content string, r *pool.Result, small int) form {
	if strings.HasPrefix(content, pointerMark) || strings.HasPrefix(content, prunedMark) {
		return form{}
	}
	stays := len(content) <= small && !isBinary(content)
	if stays && len(own) == 0 {
		return form{}
	}
	kind := KindOf(content, r != nil && r.IsError)
	if text, rule := shorten(own, tool, kind, content); rule != "" && len(text) <= LargeOutput {
		return form{text: text, rule: rule, what: "shortened by the rule " + rule}
	}
	if stays {
		return form{}
	}
	if kind == enhancer.Binary || len(content) > LargeOutput {
		return form{text: pointer(keyOf(content, r), string(kind), describe(kind, content), len(content)), rule: asideRule, what: "put aside, " + string(kind),
			aside: func() (enhancer.Artifact, error) {
				return enhancer.Artifact{Tool: tool, Kind: kind, Size: len(content), Data: []byte(content)}, nil
			}}
	}
	if text, rule := shorten(outputRules, tool, kind, content); rule != "" {
		return form{text: text, rule: rule, what: "shortened, " + string(kind)}
	}
	return form{}
}

const asideRule = "put aside"

// shrinkParts puts the images and documents of a result aside and makes its texts smaller. It returns the tokens that this saves.
func (s *steps) shrinkParts(m *chatctx.DraftMessage, tool string, before int) int {
	parts := append([]pool.Part(nil), m.Result.Parts...)
	rule := ""
	for i := range parts {
		p := &parts[i]
		var f form
		switch p.Type {
		case pool.TextPart:
			f = smallerText(s.o.Rules, tool, p.Text, nil, SmallOutput)
		case pool.ImagePart, pool.DocumentPart:
			if key, size := partKey(p); key != "" {
				f = form{text: pointer(key, string(enhancer.Binary), strings.TrimSpace(p.Type+" "+p.MediaType+" "+p.Name), size), rule: asideRule, aside: s.attachment(p, tool)}
			}
		}
		if f.rule != "" && s.keep(m, f.aside) {
			*p, rule = pool.Part{Type: pool.TextPart, Text: f.text}, f.rule
		}
	}
	if rule == "" {
		return 0
	}
	message, result := *m.Message, *m.Result
	result.Parts, message.Result = parts, &result
	after := s.w.Counter.Message(&message, s.d.Artifact)
	if after >= before {
		return 0
	}
	s.w.replace(m, &message, after)
	s.w.count(rule, before, after)
	note(s.d, "tools", m, enhancer.Pruned, "put aside or shortened", before)
	return before - after
}
