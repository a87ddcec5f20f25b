package enhancer

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// EditRules are the optional edits of old answers and of results that are text, in order. Code blocks and JSON inside a text stay as they are, and a user message is never
// edited.
var EditRules = []Rule{
	{"fillers", fillers},
	{"phrases", phrases},
	{"repeats", repeats},
	{"examples", examples},
	{"verbose", verbose},
}

// edit applies EditRules to the answers from an index to another until goal tokens are cleared, and returns the position that it came to.
func (s *steps) edit(from, to, goal int) int {
	cleared, last := 0, 0
	for i := from; i < to && cleared < goal; i++ {
		if saved := s.editOne(s.d.Messages[i]); saved > 0 {
			cleared += saved
			last = s.position(i + 1)
		}
	}
	return last
}

// editsTo edits the answers up to a position.
func (s *steps) editsTo(position int) {
	if position > 0 {
		for _, m := range s.d.Messages[:s.index(position)] {
			s.editOne(m)
		}
	}
}

// editMost is the length of a text in bytes up to which it is taken for an answer or a transcript that can be edited.
const editMost = 64 << 10

// editOne edits an answer's texts, or a result that is text, and returns the tokens that this saved.
func (s *steps) editOne(m *chatctx.DraftMessage) int {
	if m.Pinned || m.Kind != "" || m.Role != pool.Assistant && !isResult(m) {
		return 0
	}
	message := *m.Message
	var done []string
	if r := m.Result; r != nil {
		result := *r
		if len(r.Parts) == 0 && r.JSON == nil && m.State != Pruned && KindOf(r.Text, r.IsError) == Text {
			result.Text, done = edited(r.Text)
		}
		message.Result = &result
	}
	message.Content = append([]pool.Part(nil), m.Content...)
	for i := range message.Content {
		if p := &message.Content[i]; p.Type == pool.TextPart && m.Role == pool.Assistant {
			if text, rules := edited(p.Text); rules != nil {
				*p, done = pool.Part{Type: pool.TextPart, Text: text}, append(done, rules...)
			}
		}
	}
	if done == nil {
		return 0
	}
	before := s.w.of(s.d, m)
	after := s.w.Counter.Message(&message, s.d.Artifact)
	if after >= before {
		return 0
	}
	m.Message, m.Tokens = &message, after
	note(s.d, "tools", m, Pruned, "edited: "+strings.Join(done, ", "), before)
	return before - after
}

// edited is a text after EditRules, and the names of those that made it shorter.
func edited(text string) (string, []string) {
	var done []string
	if len(text) > editMost {
		return text, nil
	}
	for _, rule := range EditRules {
		if next := rule.Apply(text); len(next) < len(text) {
			text, done = next, append(done, rule.Name)
		}
	}
	return text, done
}

var (
	speaker = regexp.MustCompile(`(?m)^\s*[A-Z][\w .]{0,30}:\s`)
	filler  = regexp.MustCompile(`(?i)(^|[\s,])(?:um+|uh+|erm*|you know|i mean|sort of|kind of|like,|well,)([\s,.!?]|$)`)
)

// fillers takes words like "um" out of transcripts: texts of which at least three lines begin with a speaker's name.
func fillers(text string) string {
	return outsideCode(text, func(prose string) string {
		if len(speaker.FindAllStringIndex(prose, 3)) < 3 {
			return prose
		}
		return untilStable(prose, func(p string) string { return squeezeBlanks(filler.ReplaceAllString(p, "$1$2")) })
	})
}

// untilStable applies f, which only takes away, until it changes nothing.
func untilStable(text string, f func(string) string) string {
	for {
		next := f(text)
		if next == text {
			return text
		}
		text = next
	}
}

var blanks = regexp.MustCompile(`([^\s])[ ]{2,}| +([,.!?])|,(\s*,)+`)

// squeezeBlanks closes the gaps that words left inside lines.
func squeezeBlanks(text string) string {
	return blanks.ReplaceAllStringFunc(text, func(gap string) string {
		switch last := gap[len(gap)-1]; {
		case gap[0] == ',':
			return ","
		case last == ' ':
			return strings.TrimRight(gap, " ") + " "
		default:
			return string(last)
		}
	})
}

var phrase = regexp.MustCompile(`(?i)(?:as (?:i|we) (?:already |previously )?(?:said|mentioned|noted|explained)(?: before| earlier| above| previously)?|like i said|as previously (?:mentioned|stated|noted)|` +
	`it(?:'s| is) (?:important|worth) (?:to note|noting) that|needless to say|to be honest|at the end of the day),? ?`)

// phrases takes phrases out that say nothing.
func phrases(text string) string {
	return outsideCode(text, func(prose string) string {
		return untilStable(prose, func(p string) string { return phrase.ReplaceAllString(p, "") })
	})
}

var (
	sentence   = regexp.MustCompile(`[^.!?\n]+[.!?]+(?:\s+|$)|[^.!?\n]+(?:\n+|$)|[.!?\s]+`)
	timesMark  = regexp.MustCompile(`\(×\d+\)\s*$`)
	exampleOne = regexp.MustCompile(`(?i)^\s*(?:for example|for instance|e\.g\.|another example|as an example)\b`)
)

// repeats keeps the first of sentences that are the same and says how often there are.
func repeats(text string) string {
	return outsideCode(text, func(prose string) string {
		parts := sentence.FindAllString(prose, -1)
		if strings.Join(parts, "") != prose {
			return prose
		}
		count := map[string]int{}
		for _, p := range parts {
			count[strings.TrimSpace(p)]++
		}
		var out strings.Builder
		done := map[string]bool{}
		for _, p := range parts {
			key := strings.TrimSpace(p)
			switch n := count[key]; {
			case n < 2 || len(key) < 20 || timesMark.MatchString(key):
				out.WriteString(p)
			case !done[key]:
				done[key] = true
				fmt.Fprintf(&out, "%s (×%d)%s", key, n, p[len(strings.TrimRight(p, " \t\n")):])
			}
		}
		return out.String()
	})
}

// examples keeps the first two of the sentences that begin as examples, and says how many there were more.
func examples(text string) string {
	return outsideCode(text, func(prose string) string {
		parts := sentence.FindAllString(prose, -1)
		if strings.Join(parts, "") != prose {
			return prose
		}
		var out strings.Builder
		n, at := 0, 0
		for _, p := range parts {
			if exampleOne.MatchString(p) {
				if n++; n > 2 {
					continue
				}
			}
			out.WriteString(p)
			if n == 2 && at == 0 {
				at = out.Len()
			}
		}
		if n <= 2 {
			return prose
		}
		kept := out.String()
		return kept[:at] + fmt.Sprintf("(%d more examples) ", n-2) + kept[at:]
	})
}

// verboseFrom is the length in tokens of four bytes from which an answer is called very long.
const verboseFrom = 1000 * 4

const sentencesKept = 5

// verbose keeps the first and the last sentences of each stretch of prose in a very long answer.
func verbose(text string) string {
	if len(text) < verboseFrom {
		return text
	}
	return outsideCode(text, func(prose string) string {
		parts := sentence.FindAllString(prose, -1)
		if strings.Join(parts, "") != prose || len(parts) <= 2*sentencesKept+2 {
			return prose
		}
		first, last := parts[:sentencesKept], parts[len(parts)-sentencesKept:]
		left := len(parts) - 2*sentencesKept
		return strings.Join(first, "") + fmt.Sprintf("[… %d sentences left out …]\n", left) + strings.Join(last, "")
	})
}
