package window

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/pool"
)

// HistoryMark begins every digest.
const HistoryMark = "[HISTORY_SUMMARY]"

// Digest returns the facts that matter in messages, found by rules alone: the same messages give the same text.
func Digest(messages []*chatctx.DraftMessage) string {
	f := gather(messages, nil, func(m *chatctx.DraftMessage) *pool.Message { return m.Message })
	return strings.TrimSpace(strings.TrimPrefix(f.String(), HistoryMark))
}

// The kinds of facts, in their order in a digest.
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
	detailKind
	kindCount
)

// kinds says what a fact is worth if not all fit: the first of a kind has worth, and each further one less, by decay. Errors lose little, since a model cannot
// ask for one that the digest lacks. most is how many facts are kept.
var kinds = [kindCount]struct {
	name         string
	worth, decay float64
	most         int
}{
	askedKind:      {"asked", 80, 1, 6},
	decisionKind:   {"decisions", 90, 0.5, 40},
	constraintKind: {"constraints", 88, 0.5, 40},
	errorKind:      {"errors", 100, 0.02, 40},
	stateKind:      {"state", 85, 1, 1},
	outcomeKind:    {"outcomes", 40, 1, 6},
	pathKind:       {"paths", 60, 0.25, 40},
	idKind:         {"identifiers", 60, 0.25, 40},
	urlKind:        {"urls", 56, 0.25, 20},
	statusKind:     {"status", 25, 1, 6},
	toolKind:       {"tools", 30, 1, 6},
	detailKind:     {"details", 26, 0.5, 40},
}

// mentionWorth is the worth of an error that is only mentioned.
const mentionWorth = 24

// fact is one fact of a digest.
type fact struct {
	text   string
	weight int // the number of messages that have it, or how certain an error is
	seen   int // the last message that has it
}

// facts are those that a digest holds, each list in the order of the conversation, without duplicates.
type facts struct {
	messages int
	lists    [kindCount][]fact
	notes    []string // texts of a model, kept unchanged
}

// These bounds keep the cost of a digest from growing with the conversation: it reads the first and the newest messages, and the beginning and end of each. It
// looks for errors in more of it.
const (
	factBytes = 140
	saidBytes = 200 // of a sentence that is a plain fact
	scanFirst = 8   // messages
	scanLast  = 100 // messages
	scanHead  = 3000
	scanTail  = 1000
	scanAll   = 96 << 10 // bytes in all
	errorsAll = 1 << 20  // bytes that are searched for errors, the newest first
	errorsHit = 1000     // lines of them that are examined
)

// gather returns the facts of messages. later are the messages that stay: facts to which they refer are worth more. whole returns a message as it was before it
// was shortened.
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
	details := f.lists[detailKind]
	f.lists[detailKind] = nil
	f.lists[detailKind] = slices.DeleteFunc(details, func(d fact) bool { return f.has(d.text) })
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
	room    int // bytes that may still be read
	at      int // the number of the message
	numbers map[string]number
}

// errorsOf returns the errors in each message. It begins with the newest and stops at errorsAll bytes or errorsHit lines.
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

// contentOf returns a message's text to look for facts in.
func contentOf(m *pool.Message) string {
	if m.Result != nil {
		return outputText(messageText(m))
	}
	return messageText(m)
}

// number is a plain number, which matters only if it appears again.
type number struct {
	text string // with the word before it
	seen int
}

// add adds the facts of one message; unless all is set, only its errors.
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
		if p.score > mention && (whole.Result != nil || saysOf(m.Role).reports(p.String())) {
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

// said adds what people and models say in words.
func (g *gatherer) said(m *chatctx.DraftMessage, content string) {
	if m.Role == pool.User && m.Kind == "" {
		g.put(askedKind, firstSentence(content))
	}
	prose := newText(headTail(outsideCode(content, func(s string) string { return s }, func(string) string { return "\n" }), scanHead, scanTail))
	weight := 1
	if m.Role == pool.User || m.Role == pool.System {
		weight = 3 // they say what is wanted
	}
	saysOf(m.Role).find(prose.all, func(k int, said string) { g.facts.put(k, fact{oneFact(k, said), weight, g.at}) })
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

// spoken finds sentences of prose about an error.
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

// named adds everything with a name: identifiers, paths, addresses, codes, numbers.
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

// refer raises the weight of facts that a later message mentions.
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

// put adds a fact of the current message, or counts it again.
func (g *gatherer) put(kind int, text string) { g.facts.put(kind, fact{oneFact(kind, text), 1, g.at}) }

// put adds a fact to a list. A fact that is there already counts once more for each message that has it. If the list is too long, the fact that is worth least
// goes.
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

// ranked returns the indexes of a list's facts, the one that is worth most first: facts of more messages first, and then newer ones. The first request says
// what the conversation is about, so it comes first.
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

// rowShown is how many identifiers of a row (row_1, row_2, …) are kept if no other message mentions them.
const rowShown = 2

// inRows reports for each identifier whether it is one too many of such a row.
func inRows(list []fact) []bool {
	out, rows := make([]bool, len(list)), map[string]int{}
	for i, f := range list {
		shape := shapeOf(f.text)
		rows[shape]++
		out[i] = f.weight < 2 && rows[shape] > rowShown
	}
	return out
}

// messageText returns a message's text, or that of its result.
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

// headTail returns the beginning and the end of a text, and all of it if it is short.
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

// sentenceEnd returns where the sentence or line that contains i ends.
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

// lastSentences returns the last words of an answer, which say where things stood.
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

// oneFact returns a fact on one line, without the separator of facts. The line of an error keeps its spaces.
func oneFact(kind int, text string) string {
	most := factBytes
	switch kind {
	case errorKind:
		most = problemLine + problemFrame + problemAlso + 40
	case decisionKind, constraintKind, outcomeKind, detailKind:
		most = saidBytes
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

// merge adds later facts.
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

// String returns the digest: a first line, and one for each kind of fact.
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

// parseDigest parses the text that String returns; unknown lines become notes.
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

// valued is a fact with its worth.
type valued struct {
	kind, at int
	worth    float64
}

// byWorth returns all facts, the one that is worth most first.
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

// only returns the picked facts, in their order.
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

// packTries is how many of the less valuable facts are tried after the first one that does not fit.
const packTries = 8

// within returns a digest of at most limit tokens, with the facts that are worth most. At the least only its first line is left, which may be over limit.
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

// clipped returns the facts with errors of at most most bytes; their places in the code stay.
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

// pack returns the digest of as many facts as fit, the most valuable first, and how many errors it lacks.
func (f *facts) pack(fits func(*facts) bool) (text string, lost int) {
	all := f.byWorth()
	low, high := 0, len(all) // the first low facts fit, or none does
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
