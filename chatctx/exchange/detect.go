package exchange

import (
	"bytes"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"slices"
	"unicode/utf8"
)

// headSize is how many bytes of a file detection sees.
const headSize = 1 << 20

// head is the beginning of a file, for detection.
type head struct {
	text  []byte    // as UTF-8, without a byte order mark
	whole bool      // text is the whole file
	db    *database // set if the file is a SQLite database
	lined bool      // each line has a value, and there are several
	array bool      // the file is a JSON array, and values are its items
	// values are the items of the array, or the values one after another (JSON Lines; one value for a file that is one object). The last one may be cut off;
	// then it has what its beginning holds.
	values []value
}

// any reports whether f is true for one of the values.
func (h *head) any(f func(v value) bool) bool {
	return slices.ContainsFunc(h.values, f)
}

// first returns the first value.
func (h *head) first() value {
	if len(h.values) == 0 {
		return value{}
	}
	return h.values[0]
}

// newHead parses the beginning of a file.
func newHead(text []byte, whole bool) *head {
	h := &head{text: text, whole: whole}
	if p := skipSpace(text, 0); p < len(text) && text[p] == '[' {
		if v, _, err := glance(text, !whole); err == nil && v.len() > 0 && v.first().kind() >= arrayKind || err == nil && v.len() == 0 {
			h.array = true
			for it := range v.items() {
				h.values = append(h.values, it)
			}
			return h
		}
		if h.array = h.salvage(text[p+1:]); h.array {
			return h
		}
	}
	if v, _, err := glance(text, !whole); err == nil && v.is(objectKind) && bytes.IndexByte(v.raw(), '\n') >= 0 {
		h.concatenated(text)
	} else {
		h.lines(text) // a value on each line, one of which may be damaged
	}
	return h
}

// glance parses a value to recognise it. One that is nested too deeply ends there: who reads it says so.
func glance(text []byte, partial bool) (v value, rest []byte, err error) {
	v, rest, err = new(document).parse(text, partial)
	if e, is := err.(*syntaxError); is && e.deep() {
		return new(document).parse(text, true)
	}
	return v, rest, err
}

// salvage reads the items of an array one by one, because the array as a whole is damaged.
func (h *head) salvage(text []byte) bool {
	var values []value
	for len(text) > 0 {
		var c cutter
		text = bytes.TrimLeft(text, " \r\n\t,")
		n, _ := c.feed(text)
		if n == 0 {
			break
		}
		if v, _, err := new(document).parse(text[:n], true); err == nil && v.is(objectKind) {
			values = append(values, v)
		}
		text = text[n:]
	}
	h.values = values
	return len(values) > 0
}

// lines reads a value from each line, ignoring lines without one. If more lines are no JSON at all, as in a program with examples, the file is text.
func (h *head) lines(text []byte) {
	n, others := 0, 0
	for len(text) > 0 {
		line, rest, ended := bytes.Cut(text, []byte{'\n'})
		text = rest
		if line = bytes.Trim(line, " \r\t\x00"); len(line) == 0 {
			continue
		}
		n++
		h.lined = n > 1
		v, _, err := glance(line, !ended && !h.whole)
		switch {
		case err == nil && v.is(objectKind):
			h.values = append(h.values, v)
		case err != nil && line[0] != '{' && line[0] != '[':
			others++
		}
	}
	if others > len(h.values) {
		h.values = nil
	}
}

// maxHeadValues is how many values that span lines detection reads.
const maxHeadValues = 100

// concatenated reads values that span several lines.
func (h *head) concatenated(text []byte) {
	for len(h.values) < maxHeadValues {
		v, rest, err := glance(text, !h.whole)
		if err != nil || !v.is(objectKind) {
			return
		}
		h.values = append(h.values, v)
		text = rest
	}
}

// detect returns the format of a file: the store's own, a registered one, or another one of this package.
func detect(h *head) (format, bool) {
	for _, list := range [][]format{formats[:1], registeredFormats(), formats[1:]} {
		for _, f := range list {
			if f.detect(h) {
				return f, true
			}
		}
	}
	return format{}, false
}

// seen says in a few words what a file of an unknown format is.
func (h *head) seen() string {
	text := bytes.TrimSpace(h.text)
	low := bytes.ToLower(text[:min(len(text), 512)])
	switch {
	case len(text) == 0:
		return "the file is empty"
	case bytes.HasPrefix(low, []byte("<!doctype html")), bytes.HasPrefix(low, []byte("<html")), bytes.HasPrefix(low, []byte("<head")):
		return "an HTML page, not an export as JSON"
	case h.db != nil:
		return "an SQLite database that is not a conversation log"
	case h.first().has("error"):
		return "an error message, not an export: " + show.Clip(string(h.first().get("error").raw()), 200)
	case bytes.IndexByte(low, 0) >= 0 || !utf8.Valid(text[:runeEnd(text, 512)]):
		return "a binary file"
	case h.first().is(objectKind):
		return "JSON with " + whichKeys(h.first())
	case text[0] == '{' || text[0] == '[':
		return "JSON that is not a list of conversations, or is damaged at its beginning"
	}
	return "text that begins with " + quoteClip(string(text), 40)
}

// runeEnd returns the end of the last whole character within n bytes.
func runeEnd(b []byte, n int) int {
	if len(b) <= n {
		return len(b)
	}
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return n
}
