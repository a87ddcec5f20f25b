package enhancer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer/tokens"
	"github.com/chatctx/chatctx/pool"
)

// HistoryMark begins every digest.
const HistoryMark = "[HISTORY_SUMMARY]"

// Digest says what matters of messages, made from their words alone: the same messages give the same text.
func Digest(messages []*chatctx.DraftMessage) string {
	f := gather(messages, nil, func(m *chatctx.DraftMessage) *pool.Message { return m.Message })
	return strings.TrimSpace(strings.TrimPrefix(f.String(), HistoryMark))
}

// The kinds of facts, in the order in which a digest has them.
const (
	askedKind = iota
	decisionKind
	constraintKind
	errorKind
	stateKind
	outcomeKind
	pathKind
	idKind
	urlKind
	statusKind
	toolKind
	kindCount
)

// kinds say what a fact is worth where not all fit: the first of a kind worth, each further one less by decay. Errors lose little: one that is not in the digest cannot be asked
// for. most is how many are kept at all.
var kinds = [kindCount]struct {
	name         string
	worth, decay float64
	most         int
}{
	askedKind:      {"asked", 80, 1, 6},
	decisionKind:   {"decisions", 90, 0.5, 10},
	constraintKind: {"constraints", 88, 0.5, 10},
	errorKind:      {"errors", 100, 0.02, 40},
	stateKind:      {"state", 85, 1, 1},
	outcomeKind:    {"outcomes", 40, 1, 6},
	pathKind:       {"paths", 60, 0.25, 40},
	idKind:         {"identifiers", 60, 0.25, 40},
	urlKind:        {"urls", 56, 0.25, 20},
	statusKind:     {"status", 25, 1, 6},
	toolKind:       {"tools", 30, 1, 6},
}

// mentionWorth is what an error is worth that is only spoken of.
const mentionWorth = 24

// fact is one of a digest.
type fact struct {
	text   string
	weight int // in how many messages it stands, or how certain an error is
	seen   int // the message that it was seen in last
}

// facts are what a digest holds of messages, each list in the order of the conversation, without doubles.
type facts struct {
	messages int
	lists    [kindCount][]fact
	notes    []string // what a model wrote, kept as it is
}

// How much of a conversation a digest looks at, so that its cost does not grow with the conversation: the first and the newest messages, and the beginning
// and end of each. Errors are looked for in more of it.
const (
	factBytes = 140
	scanFirst = 8   // messages
	scanLast  = 100 // messages
	scanHead  = 3000
	scanTail  = 1000
	scanAll   = 96 << 10 // bytes
	errorsAll = 1 << 20  // bytes that are looked through for errors, the newest first
	errorsHit = 1000     // lines of them that are looked at closely
)

// gather collects the facts of messages. later are the messages that stay: what they refer to is worth more. whole gives a message as it was before it was made shorter.
func gather(messages, later []*chatctx.DraftMessage, whole func(*chatctx.DraftMessage) *pool.Message) *facts {
	f := &facts{messages: len(messages)}
	g := gatherer{facts: f, room: scanAll, numbers: map[string]number{}}
	errors := errorsOf(messages, whole)
	for i, m := range messages {
		g.add(m, whole(m), errors[i], i < scanFirst || i >= len(messages)-scanLast)
	}
	for _, m := range later[:min(len(later), scanFirst)] {
		g.refer(headTail(messageText(m.Message), scanHead, scanTail))
	}
	ids := f.lists[idKind]
	spare := inRows(ids)
	f.lists[idKind] = nil
	for i := range ids {
		if !spare[i] {
			f.lists[idKind] = append(f.lists[idKind], ids[i])
		}
	}
	return f
}

type gatherer struct {
	*facts
	room    int // bytes that may still be looked at
	at      int // the number of the message
	numbers map[string]number
}

// errorsOf finds the errors in each of some messages, the newest ones first as long as they are not too much.
func errorsOf(messages []*chatctx.DraftMessage, whole func(*chatctx.DraftMessage) *pool.Message) [][]problem {
	out := make([][]problem, len(messages))
	room, lines := errorsAll, errorsHit
	for i, m := range slices.Backward(messages) {
		if m.Kind == "digest" || m.Kind == "summary" {
			continue
		}
		content := contentOf(whole(m))
		if room -= min(len(content), problemScan); room < 0 || lines <= 0 {
			break
		}
		out[i] = problems(content, &lines)
	}
	return out
}

// contentOf is a message's text for finding things in.
func contentOf(m *pool.Message) string {
	if m.Result != nil {
		return outputText(messageText(m))
	}
	return messageText(m)
}

// number is a plain number, which matters once it comes again.
type number struct {
	text string // with the word before it
	seen int
}

// add takes the facts of one message in; of those between the first and the newest only the errors.
func (g *gatherer) add(m *chatctx.DraftMessage, whole *pool.Message, errors []problem, all bool) {
	if m.Kind == "digest" || m.Kind == "summary" {
		g.merge(parseDigest(m.Text()))
		g.messages--
		return
	}
	g.at++
	for i := range m.Calls {
		if all {
			g.put(toolKind, m.Calls[i].Tool+"("+string(m.Calls[i].Arguments)+")")
		}
	}
	for _, p := range errors {
		if p.score > mention {
			g.put(errorKind, p.String())
		}
	}
	if !all {
		return
	}
	content := contentOf(whole)
	t := newText(headTail(content, scanHead, scanTail))
	if g.room -= len(t.all); g.room < 0 {
		return
	}
	if whole.Result == nil {
		g.said(m, content)
	}
	g.named(t)
}

// said takes what people and models say in words.
func (g *gatherer) said(m *chatctx.DraftMessage, content string) {
	if m.Role == pool.User && m.Kind == "" {
		g.put(askedKind, firstSentence(content))
	}
	prose := newText(headTail(outsideCode(content, func(s string) string { return s }, func(string) string { return "\n" }), scanHead, scanTail))
	weight := 1
	if m.Role == pool.User || m.Role == pool.System {
		weight = 3 // who says what is wanted
	}
	for k, find := range saidKinds {
		if find != nil {
			find(prose, func(said string) { g.facts.put(k, fact{oneFact(k, said), weight, g.at}) })
		}
	}
	spoken(prose, func(said string) {
		if said = oneFact(outcomeKind, said); !g.has(said) {
			g.put(errorKind, said)
		}
	})
	if m.Role == pool.Assistant && strings.TrimSpace(prose.all) != "" {
		g.lists[stateKind] = nil
		g.put(stateKind, lastSentences(prose.all))
	}
}

var saidKinds = [kindCount]func(t *text, add func(string)){
	decisionKind: keywords("decided", "decision", "chose", "chosen", "selected", "agreed", "we will use", "we'll use", "i'll use", "let's use", "let's go with", "going with", "instead of", "settled on",
		"switch to", "switched to", "approach"),
	constraintKind: keywords("must", "must not", "should", "cannot", "can't", "never", "always", "required", "requirement", "do not", "don't", "at most", "at least", "only", "make sure", "ensure", "no more than",
		"not allowed", "forbidden", "keep in mind", "important"),
	outcomeKind: keywords("result", "conclusion", "completed", "finished", "done", "fixed", "solved", "passed", "succeeded", "works now", "turned out", "root cause"),
}

// spoken finds where prose speaks of an error.
var spoken = keywords("error", "exception", "panic", "failed", "failure", "fails", "crashes", "broken")

// has reports whether a sentence is in the digest.
func (f *facts) has(said string) bool {
	for k := range f.lists {
		if slices.ContainsFunc(f.lists[k], func(have fact) bool { return strings.Contains(have.text, said) }) {
			return true
		}
	}
	return false
}

// named takes what has a name: identifiers, paths, addresses, codes, numbers.
func (g *gatherer) named(t *text) {
	t.identifiers(func(id string) { g.put(idKind, id) })
	t.urls(func(url string) { g.put(urlKind, url) })
	t.paths(func(path string) { g.put(pathKind, path) })
	t.statusCodes(func(code string) { g.put(statusKind, code) })
	t.numbers(func(n, inWords string) {
		known, ok := g.numbers[n]
		switch {
		case !ok && len(g.numbers) < 1000:
			g.numbers[n] = number{inWords, g.at}
		case ok && known.seen != g.at:
			g.put(idKind, known.text)
		}
	})
}

// refer makes what a later message speaks of worth more.
func (g *gatherer) refer(text string) {
	for _, k := range []int{pathKind, idKind, urlKind} {
		for i := range g.lists[k] {
			if strings.Contains(text, g.lists[k][i].text) {
				g.lists[k][i].weight += 2
			}
		}
	}
	newText(text).numbers(func(n, _ string) {
		if known, ok := g.numbers[n]; ok {
			g.put(idKind, known.text)
		}
	})
}

// put adds a fact of the message at hand, or counts it again.
func (g *gatherer) put(kind int, text string) { g.facts.put(kind, fact{oneFact(kind, text), 1, g.at}) }

// put adds a fact to a list. One that is there already counts once more for each message that it stands in; of too many the one that is worth the least goes.
func (f *facts) put(kind int, new fact) {
	list := f.lists[kind]
	if new.text == "" {
		return
	}
	if kind == errorKind {
		new.weight = errorScore(new.text)
	}
	same := func(old fact) bool { return old.text == new.text }
	if kind == errorKind {
		shape := shapeOf(withoutFrame(new.text))
		same = func(old fact) bool { return shapeOf(withoutFrame(old.text)) == shape }
	}
	if i := slices.IndexFunc(list, same); i >= 0 {
		if kind != errorKind && list[i].seen != new.seen {
			list[i].weight, list[i].seen = list[i].weight+1, new.seen
		}
		return
	}
	if list = append(list, new); len(list) > kinds[kind].most {
		order := ranked(kind, list)
		list = slices.Delete(list, order[len(order)-1], order[len(order)-1]+1)
	}
	f.lists[kind] = list
}

// ranked gives the places of a list's facts, the one that is worth the most first: what stands in more messages, and of the same what is newer. Of what was asked the first
// says what it is all about.
func ranked(kind int, list []fact) []int {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	spare := make([]bool, len(list))
	if kind == idKind {
		spare = inRows(list)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if spare[a] != spare[b] {
			return map[bool]int{true: 1, false: -1}[spare[a]]
		}
		if kind == askedKind && (a == 0 || b == 0) {
			return cmp.Compare(a, b)
		}
		return cmp.Or(cmp.Compare(list[b].weight, list[a].weight), cmp.Compare(b, a))
	})
	return order
}

// rowShown is how many identifiers of a row are kept that nobody speaks of again: row_1, row_2, …
const rowShown = 2

// inRows says which identifiers go on with such a row.
func inRows(list []fact) []bool {
	out, rows := make([]bool, len(list)), map[string]int{}
	for i, f := range list {
		shape := shapeOf(f.text)
		rows[shape]++
		out[i] = f.weight < 2 && rows[shape] > rowShown
	}
	return out
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
	return text[:sentenceEnd(text, 0)]
}

// sentenceEnd is where the sentence or line ends that goes on at i.
func sentenceEnd(text string, i int) int {
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			return i
		case (c == '.' || c == '?' || c == '!') && (i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\n'):
			return i + 1
		}
	}
	return len(text)
}

// lastSentences are the last words of an answer: where things stood.
func lastSentences(text string) string {
	text = strings.TrimSpace(text)
	if len(text) <= factBytes {
		return text
	}
	cut := runeStart(text, len(text)-factBytes)
	if end := sentenceEnd(text, cut); end < cut+factBytes/2 {
		return text[end:]
	}
	if at := strings.IndexByte(text[cut:], ' '); at >= 0 {
		cut += at
	}
	return text[cut:]
}

// oneFact is a fact on one line, without what separates facts. An error's line stays as it is.
func oneFact(kind int, text string) string {
	most := factBytes
	if kind == errorKind {
		most = problemLine + problemFrame + problemAlso + 40
	}
	text = strings.ToValidUTF8(text[:min(len(text), 4*most)], "")
	if kind == errorKind {
		text = strings.TrimSpace(strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) || unicode.IsControl(r) {
				return ' '
			}
			return r
		}, text))
	} else {
		text = strings.Join(strings.Fields(text), " ")
	}
	for strings.Contains(text, " ; ") {
		text = strings.ReplaceAll(text, " ; ", ", ")
	}
	if text = strings.Trim(text, " ;"); kind != errorKind {
		text = strings.Trim(text, " -*#>;")
	}
	if len(text) > most {
		text = strings.TrimRight(text[:runeStart(text, most)], " ") + "…"
	}
	return text
}

// merge takes later facts in.
func (f *facts) merge(g *facts) {
	f.messages += g.messages
	if len(g.lists[stateKind]) > 0 {
		f.lists[stateKind] = nil
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
	for k := range kinds {
		for i := range f.lists[k] {
			if i == 0 {
				b.WriteString("\n" + kinds[k].name + ": ")
			} else {
				b.WriteString(" ; ")
			}
			b.WriteString(f.lists[k][i].text)
		}
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
	for k := range kinds {
		if kinds[k].name == name {
			for text := range strings.SplitSeq(list, " ; ") {
				f.put(k, fact{text, 1, 0})
			}
			return
		}
	}
	if n := strings.TrimPrefix(line, "note: "); strings.TrimSpace(n) != "" {
		f.notes = append(f.notes, n)
	}
}

// valued is a fact with what it is worth.
type valued struct {
	kind, at int
	worth    float64
}

// byWorth are all facts, what is worth the most first.
func (f *facts) byWorth() []valued {
	var all []valued
	for k := range f.lists {
		for rank, at := range ranked(k, f.lists[k]) {
			worth := kinds[k].worth / (1 + float64(rank)*kinds[k].decay)
			if k == errorKind && f.lists[k][at].weight < plainError {
				worth = mentionWorth / float64(1+rank)
			}
			all = append(all, valued{k, at, worth})
		}
	}
	slices.SortStableFunc(all, func(a, b valued) int { return cmp.Compare(b.worth, a.worth) })
	return all
}

// only are the facts that are picked, in their order.
func (f *facts) only(picked []valued) *facts {
	out := &facts{messages: f.messages, notes: f.notes}
	in := map[[2]int]bool{}
	for _, v := range picked {
		in[[2]int{v.kind, v.at}] = true
	}
	for k := range f.lists {
		for at, fact := range f.lists[k] {
			if in[[2]int{k, at}] {
				out.lists[k] = append(out.lists[k], fact)
			}
		}
	}
	return out
}

// packTries is how many facts are tried that are worth less than the first that does not fit.
const packTries = 8

// within is a digest of at most limit tokens: what is worth the most of it. At last only the first line is left.
func (f *facts) within(c *tokens.Counter, limit int) string {
	fits := func(g *facts) bool { return c.Text(g.String()) <= limit }
	if fits(f) {
		return f.String()
	}
	g := *f
	for len(g.notes) > 0 && !fits(g.only(nil)) {
		g.notes = slices.Clone(g.notes)
		if last := &g.notes[len(g.notes)-1]; len(*last) > 80 {
			*last = (*last)[:runeStart(*last, len(*last)/2)] + "…"
		} else {
			g.notes = g.notes[:len(g.notes)-1]
		}
	}
	text, lost := g.clipped(problemLine).pack(fits)
	for _, most := range []int{problemLine * 2 / 3, problemLine / 2, problemLine / 3} {
		if lost == 0 {
			break
		}
		if shorter, still := g.clipped(most).pack(fits); still < lost {
			text, lost = shorter, still
		}
	}
	return text
}

func withoutFrame(text string) string {
	line, _, _ := strings.Cut(text, frameMark)
	return line
}

// clipped has errors of at most so many bytes; where they stand in the code stays.
func (f *facts) clipped(most int) *facts {
	out := *f
	out.lists[errorKind] = slices.Clone(f.lists[errorKind])
	for i := range out.lists[errorKind] {
		e := &out.lists[errorKind][i]
		line, frame, _ := strings.Cut(e.text, frameMark)
		if e.text = around(line, most); frame != "" {
			e.text += frameMark + frame
		}
	}
	return &out
}

// pack is the digest of as many facts as fit, by what they are worth, and how many errors are not among them.
func (f *facts) pack(fits func(*facts) bool) (text string, lost int) {
	all := f.byWorth()
	low, high := 0, len(all) // low facts fit, or none does
	for low < high {
		if mid := (low + high + 1) / 2; fits(f.only(all[:mid])) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	picked := slices.Clone(all[:low])
	for _, v := range all[low:min(len(all), low+packTries)] {
		if more := append(slices.Clone(picked), v); fits(f.only(more)) {
			picked = more
		}
	}
	out := f.only(picked)
	for _, e := range f.lists[errorKind] {
		if e.weight >= plainError {
			lost++
		}
	}
	for _, e := range out.lists[errorKind] {
		if e.weight >= plainError {
			lost--
		}
	}
	return out.String(), lost
}
