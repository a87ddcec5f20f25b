package enhancer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer/tokens"
	"github.com/chatctx/chatctx/pool"
)

// HistoryMark begins every digest.
const HistoryMark = "[HISTORY_SUMMARY]"

// facts are what a digest holds of messages, each list in the order of the conversation, without doubles.
type facts struct {
	messages int
	asked    []string
	lists    [len(kinds)][]string
	notes    []string // what a model wrote, kept as it is
}

// kinds of facts, the most telling first. find appends those of a text.
var kinds = [...]struct {
	name string
	find func(t *text, add func(fact string))
}{
	{"decisions", keywords("decided", "decision", "chose", "chosen", "selected", "agreed", "we will use", "let's use", "going with")},
	{"constraints", keywords("must", "should", "cannot", "can't", "never", "always", "required", "do not", "don't", "at most", "at least")},
	{"errors", keywords("error", "exception", "panic", "failed", "failure", "traceback")},
	{"outcomes", keywords("result", "conclusion", "completed", "finished", "done", "fixed", "solved", "passed", "succeeded", "works now")},
	{"identifiers", (*text).identifiers},
	{"urls", (*text).urls},
	{"status", (*text).statusCodes},
	{"tools", func(*text, func(string)) {}}, // from the calls
}

const toolKind = len(kinds) - 1

// How much of a conversation a digest looks at, so that its cost does not grow with the conversation: the first and the newest messages, and the beginning
// and end of each.
const (
	factsEach = 6
	factBytes = 140
	scanFirst = 8   // messages
	scanLast  = 100 // messages
	scanHead  = 1500
	scanTail  = 500
	scanAll   = 32 << 10 // bytes
)

// gather collects the facts of messages.
func gather(messages []*chatctx.DraftMessage) *facts {
	f := &facts{messages: len(messages)}
	room := scanAll
	scan := func(list []*chatctx.DraftMessage) {
		for _, m := range list {
			f.add(m, &room)
		}
	}
	if len(messages) <= scanFirst+scanLast {
		scan(messages)
		return f
	}
	scan(messages[:scanFirst])
	scan(messages[len(messages)-scanLast:])
	return f
}

// add takes the facts of one message in.
func (f *facts) add(m *chatctx.DraftMessage, room *int) {
	if m.Kind == "digest" || m.Kind == "summary" {
		f.merge(parseDigest(m.Text()))
		f.messages--
		return
	}
	for i := range m.Calls {
		f.put(toolKind, m.Calls[i].Tool+"("+string(m.Calls[i].Arguments)+")")
	}
	content := messageText(m.Message)
	if m.Role == pool.User && m.Kind == "" {
		f.asked = put(f.asked, firstSentence(content))
	}
	text := newText(headTail(content, scanHead, scanTail))
	if *room -= len(text.all); *room < 0 {
		return
	}
	for k := range kinds {
		kinds[k].find(text, func(fact string) { f.put(k, fact) })
	}
}

// messageText is a message's text, or its result's.
func messageText(m *pool.Message) string {
	if r := m.Result; r != nil {
		switch {
		case len(r.Parts) > 0:
			return (&pool.Message{Content: r.Parts}).Text()
		case r.JSON != nil:
			return string(r.JSON)
		}
		return r.Text
	}
	return m.Text()
}

// headTail is the beginning and the end of a text.
func headTail(text string, head, tail int) string {
	if len(text) <= head+tail {
		return text
	}
	return text[:runeStart(text, head)] + "\n" + text[runeStart(text, len(text)-tail):]
}

func firstSentence(text string) string {
	text = strings.TrimSpace(text[:min(len(text), 1000)])
	if at := strings.IndexAny(text, ".?!\n"); at > 0 {
		text = text[:at+1]
	}
	return text
}

func (f *facts) put(kind int, fact string) { f.lists[kind] = put(f.lists[kind], fact) }

// put adds a fact to a list that does not have it yet. The first stays, and of the others the newest.
func put(list []string, fact string) []string {
	fact = oneFact(fact)
	if fact == "" || slices.Contains(list, fact) {
		return list
	}
	if len(list) >= factsEach {
		list = slices.Delete(slices.Clone(list), 1, 2)
	}
	return append(list, fact)
}

// oneFact is a fact on one line, without what separates facts.
func oneFact(fact string) string {
	fact = strings.Join(strings.Fields(strings.ToValidUTF8(fact[:min(len(fact), 4*factBytes)], "")), " ")
	fact = strings.ReplaceAll(fact, " ; ", ", ")
	fact = strings.Trim(fact, " -*#>;")
	if len(fact) > factBytes {
		fact = strings.TrimRight(fact[:runeStart(fact, factBytes)], " ") + "…"
	}
	return fact
}

// merge takes later facts in.
func (f *facts) merge(g *facts) {
	f.messages += g.messages
	for _, a := range g.asked {
		f.asked = put(f.asked, a)
	}
	for k := range g.lists {
		for _, fact := range g.lists[k] {
			f.put(k, fact)
		}
	}
	for _, n := range g.notes {
		if !slices.Contains(f.notes, n) {
			f.notes = append(f.notes, n)
		}
	}
}

// String is the digest: a first line, and one for each kind of fact.
func (f *facts) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d earlier messages", HistoryMark, f.messages)
	line := func(name string, list []string) {
		if len(list) > 0 {
			fmt.Fprintf(&b, "\n%s: %s", name, strings.Join(list, " ; "))
		}
	}
	line("asked", f.asked)
	for k := range kinds {
		line(kinds[k].name, f.lists[k])
	}
	for _, n := range f.notes {
		b.WriteString("\nnote: " + n)
	}
	return b.String()
}

// parseDigest reads what String wrote; lines that it does not know are notes.
func parseDigest(text string) *facts {
	f := &facts{}
	first, rest, _ := strings.Cut(text, "\n")
	if _, err := fmt.Sscanf(first, HistoryMark+" %d earlier messages", &f.messages); err != nil {
		rest = strings.TrimSpace(strings.TrimPrefix(text, HistoryMark))
	}
	for line := range strings.Lines(rest) {
		f.parseLine(strings.TrimRight(line, "\n"))
	}
	return f
}

func (f *facts) parseLine(line string) {
	name, list, _ := strings.Cut(line, ": ")
	if name == "asked" {
		f.asked = strings.Split(list, " ; ")
		return
	}
	for k := range kinds {
		if kinds[k].name == name {
			f.lists[k] = strings.Split(list, " ; ")
			return
		}
	}
	if n := strings.TrimPrefix(line, "note: "); strings.TrimSpace(n) != "" {
		f.notes = append(f.notes, n)
	}
}

// within shortens the facts until their digest is of at most limit tokens: of the longest list the second goes first, since the first says how it began. At last only the first
// line is left.
func (f *facts) within(c *tokens.Counter, limit int) string {
	for {
		text := f.String()
		if c.Text(text) <= limit || !f.shrink() {
			return text
		}
	}
}

func (f *facts) shrink() bool {
	longest := &f.asked
	for k := len(kinds) - 1; k >= 0; k-- {
		if len(f.lists[k]) > len(*longest) {
			longest = &f.lists[k]
		}
	}
	switch n := len(*longest); {
	case n > 1:
		*longest = slices.Delete(slices.Clone(*longest), 1, 2)
	case n == 1 && len(f.notes) == 0:
		*longest = nil
	case len(f.notes) > 0:
		last := &f.notes[len(f.notes)-1]
		if len(*last) > 80 {
			*last = (*last)[:runeStart(*last, len(*last)/2)] + "…"
		} else {
			f.notes = f.notes[:len(f.notes)-1]
		}
	default:
		return false
	}
	return true
}
