package exchange

import (
	"cmp"
	"html"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Google Takeout's MyActivity.json is an array of a person's activities in Google's programs, newest first. Rows of Gemini (formerly Bard) hold a prompt in the
// title and the answer as HTML; newer ones name their conversation. There are no ids of messages and no branches.

const takeoutName = "gemini-takeout"

func detectTakeout(h *head) bool {
	v := h.first()
	return h.array && v.has("header") && v.has("title") && v.has("time")
}

func readTakeout(r *reading) error {
	t := &takeout{r: r, chats: map[string]*takeoutChat{}}
	return r.atEnd(r.eachItem("", t.row), t.emit)
}

type takeout struct {
	r      *reading
	chats  map[string]*takeoutChat
	order  []*takeoutChat
	others []string // the items that are not conversations: other programs' rows, and events
}

type takeoutChat struct {
	id   string
	rows []takeoutRow
}

type takeoutRow struct {
	at             place
	time           pool.Time
	id             string
	prompt, answer *chatctx.Message
}

// messages returns the prompt and, if there is one, the answer.
func (row *takeoutRow) messages() []*chatctx.Message {
	if row.answer == nil {
		return []*chatctx.Message{row.prompt}
	}
	return []*chatctx.Message{row.prompt, row.answer}
}

// compiled returns a function that compiles a regular expression at its first call.
func compiled(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

var takeoutID = compiled(`/app/([0-9a-f]{8,})`)

func (t *takeout) row(at place, v value) error {
	if !v.is(objectKind) || !v.get("title").is(stringKind) {
		t.r.skip(1, at, "the row is %s without a title and is left out", v.kind())
		return nil
	}
	answer := ""
	for it := range v.get("safeHtmlItem").items() {
		answer = firstOf(answer, it.get("html").str())
	}
	prompt, prompted := strings.CutPrefix(v.get("title").str(), "Prompted ")
	if header := v.get("header").str(); !strings.Contains(header, "Gemini") && !strings.Contains(header, "Bard") || !prompted && answer == "" {
		t.r.structural(1)
		t.others = append(t.others, itoa(at.index))
		return nil
	}
	row := takeoutRow{at: at, time: v.get("time").time()}
	row.prompt = pool.NewText(pool.User, prompt)
	row.prompt.Created = row.time
	for _, list := range []string{"imageFile", "attachedFiles"} {
		for f := range firstPresent(v.get(list)).items() {
			row.prompt.Content = append(row.prompt.Content, t.attached(f))
		}
		if f := v.get(list); f.is(stringKind) {
			row.prompt.Content = append(row.prompt.Content, t.attached(f))
		}
	}
	if answer != "" {
		row.answer = pool.NewText(pool.Assistant, htmlText(answer))
		row.answer.Created, row.answer.Meta.Provider = row.time, geminiProvider
	}
	v.get("title").taken()
	t.r.whole(at, v, row.messages()...)
	row.id = digest([]*chatctx.Message{pool.NewText(pool.User, v.get("time").str()), row.prompt})
	t.put(v, row)
	return nil
}

func (t *takeout) put(v value, row takeoutRow) {
	id := row.id
	links := []string{v.get("titleUrl").str()}
	for d := range v.get("details").items() {
		links = append(links, d.get("url").str(), d.get("name").str())
	}
	for _, l := range links {
		if m := takeoutID().FindStringSubmatch(l); m != nil {
			id = m[1]
		}
	}
	c := t.chats[id]
	if c == nil {
		c = &takeoutChat{id: id}
		t.chats[id], t.order = c, append(t.order, c)
	}
	c.rows = append(c.rows, row)
}

// attached reads a file beside the rows, if the archive contains it.
func (t *takeout) attached(v value) pool.Part {
	name := firstOf(v.str(), v.get("name").str())
	f, err := t.r.file.sibling(path.Join(path.Dir(t.r.file.path), name))
	if err == nil && name != "" {
		if b, err := f.read(t.r.limits.Asset); err == nil && len(b) > 0 {
			return filePart(path.Base(name), b)
		}
	}
	return pool.Part{Type: "file_reference", Name: name, Raw: v.keep()}
}

func (t *takeout) emit() error {
	for _, c := range t.order {
		if err := t.chat(c); err != nil {
			return err
		}
	}
	if len(t.others) > 0 {
		t.r.warn(place{}, "the format holds no branches and no drafts; these items are no conversations and are left out: %s", strings.Join(t.others, ", "))
	} else if len(t.order) > 0 {
		t.r.warn(place{}, "the format holds no branches and no drafts")
	}
	return nil
}

// chat passes a conversation on in the order of time; the file has rows newest first.
func (t *takeout) chat(c *takeoutChat) error {
	slices.Reverse(c.rows)
	slices.SortStableFunc(c.rows, func(a, b takeoutRow) int { return cmp.Compare(a.time, b.time) })
	th := t.r.thread(c.rows[0].at)
	for _, row := range c.rows {
		th.next(row.at, row.id, row.prompt)
		if row.answer != nil {
			th.next(row.at, row.id+"/answer", row.answer)
		}
	}
	in := &record.Incoming{Conversation: c.id, Created: c.rows[0].time, Updated: c.rows[len(c.rows)-1].time}
	return th.emit(in, th.last())
}

var (
	htmlBreak = compiled(`(?i)<(/p|/div|/h[1-6]|/ul|/ol|/table|/tr|/pre|/blockquote|br\s*/?)\s*>`)
	htmlItem  = compiled(`(?i)\s*<li[^>]*>`)
	htmlCell  = compiled(`(?i)</t[dh]>`)
	htmlDrop  = compiled(`(?is)<(script|style)[^>]*>.*?</(script|style)>`)
	htmlTag   = compiled(`<[^>]*>`)
	manyLines = compiled(`\n{3,}`)
)

// htmlText returns the text of HTML, with line breaks and list marks for the elements that mean them.
func htmlText(s string) string {
	s = htmlDrop().ReplaceAllString(s, "")
	s = htmlItem().ReplaceAllString(s, "\n- ")
	s = htmlBreak().ReplaceAllString(s, "\n")
	s = htmlCell().ReplaceAllString(s, "\t")
	s = html.UnescapeString(htmlTag().ReplaceAllString(s, ""))
	return strings.TrimSpace(manyLines().ReplaceAllString(s, "\n\n"))
}
