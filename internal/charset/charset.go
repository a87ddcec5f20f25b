// Package charset reads texts in the encodings that files of text have: UTF-8, UTF-16 and UTF-32 of both byte orders, Windows-1252 with Latin-1, and the
// other one-byte sets where a media type names them, as are those that other packages register. It can also replace words in them without touching any other byte.
package charset

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// Text is a text and the bytes that it was read from.
type Text struct {
	Text string // without a byte order mark
	data []byte
	from int // where the text begins in data
	set  set
}

// set is an encoding. next reads the character at the beginning of b, which is not empty; a character that is none is utf8.RuneError. put appends one.
type set struct {
	next func(b []byte) (r rune, size int)
	put  func(b []byte, r rune) []byte
}

// more are the encodings that other packages know.
var more []func(name string) (next func([]byte) (rune, int), put func([]byte, rune) []byte, known bool)

// Register makes Decode read further encodings, where a media type names them. named gets the letters and digits of a name, in lower case; next returns the character at the
// beginning of bytes, utf8.RuneError for one that is none, and put appends one. Only initialisers call it.
func Register(named func(name string) (next func(b []byte) (r rune, size int), put func(b []byte, r rune) []byte, known bool)) {
	more = append(more, named)
}

// Span is a range of a Text, in bytes of its Text.
type Span struct{ From, To int }

// Decode returns the text of data. Its encoding is that of a byte order mark, else the charset that the media type names, else what the bytes look like; that also
// decides if they are not of the charset that is named, since names are often wrong. It reports false for a charset that it does not know, and for what is no text:
// it has zeros or other control characters, or is nothing that it could look like.
func Decode(data []byte, mediaType string) (*Text, bool) {
	if t, marked := fromMark(data); marked {
		return t, true
	}
	if name := parameter(mediaType); name != "" {
		if s, known := named(name, data); known {
			t := read(data, 0, s)
			if t.readable() {
				return t, true
			}
		} else {
			return nil, false
		}
	}
	if utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 {
		return read(data, 0, utf8Set), true
	}
	for _, s := range wide {
		if t := read(data, 0, s); spaced(data, s) && t.readable() {
			return t, true
		}
	}
	if !mayBeText(mediaType) {
		return nil, false
	}
	t := read(data, 0, guessed(data))
	return t, t.readable() && !t.has(func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\r\f\b\x1b", r) })
}

// Replace returns the bytes of the text with another text in place of each span. All other bytes stay. The spans are in order and do not overlap.
func (t *Text) Replace(spans []Span, with string) []byte {
	out, at, text := bytes.Clone(t.data[:t.from]), t.from, 0
	for _, span := range spans {
		begin := at
		for text < span.From {
			at, text = t.step(at, text)
		}
		out = append(out, t.data[begin:at]...)
		for text < span.To {
			at, text = t.step(at, text)
		}
		for _, r := range with {
			out = t.set.put(out, r)
		}
	}
	return append(out, t.data[at:]...)
}

// step passes a character.
func (t *Text) step(at, text int) (int, int) {
	r, n := t.set.next(t.data[at:])
	return at + n, text + utf8.RuneLen(r)
}

func read(data []byte, from int, s set) *Text {
	var b strings.Builder
	for at := from; at < len(data); {
		r, n := s.next(data[at:])
		b.WriteRune(r)
		at += n
	}
	return &Text{Text: b.String(), data: data, from: from, set: s}
}

// readable reports whether each character is one, and none is zero.
func (t *Text) readable() bool {
	return !t.has(func(r rune) bool { return r == 0 }) && !(t.set.strict() && strings.ContainsRune(t.Text, utf8.RuneError))
}

func (t *Text) has(fn func(rune) bool) bool { return strings.IndexFunc(t.Text, fn) >= 0 }

// strict reports whether the set has bytes that are no character: all but the one-byte sets do.
func (s set) strict() bool {
	r, _ := s.next([]byte{0xff})
	return r == utf8.RuneError
}

// parameter returns the charset of a media type.
func parameter(mediaType string) string {
	for part := range strings.SplitSeq(mediaType, ";") {
		name, value, _ := strings.Cut(part, "=")
		if strings.EqualFold(strings.TrimSpace(name), "charset") {
			return plain(strings.Trim(strings.TrimSpace(value), `"`))
		}
	}
	return ""
}

// plain returns the letters and digits of a name, in lower case.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, strings.ToLower(name))
}

// named returns the set of a name as plain writes it. UTF-16 and UTF-32 without an order have that of their zeros.
func named(name string, data []byte) (set, bool) {
	switch name {
	case "utf8", "usascii", "ascii":
		return utf8Set, true
	case "utf16", "ucs2":
		return firstSpaced(data, utf16Set(binary.LittleEndian), utf16Set(binary.BigEndian)), true
	case "utf16le":
		return utf16Set(binary.LittleEndian), true
	case "utf16be":
		return utf16Set(binary.BigEndian), true
	case "utf32", "ucs4":
		return firstSpaced(data, utf32Set(binary.LittleEndian), utf32Set(binary.BigEndian)), true
	case "utf32le":
		return utf32Set(binary.LittleEndian), true
	case "utf32be":
		return utf32Set(binary.BigEndian), true
	case "iso88591", "latin1", "l1", "windows1252", "cp1252":
		return oneByte(charmap.Windows1252), true
	}
	for _, e := range charmap.All {
		m, is := e.(*charmap.Charmap)
		if is && (plain(m.String()) == name || plain(m.String()) == strings.Replace(name, "cp", "windows", 1)) {
			return oneByte(m), true
		}
	}
	for _, of := range more {
		if next, put, known := of(name); known {
			return set{next, put}, true
		}
	}
	return set{}, false
}

func firstSpaced(data []byte, little, big set) set {
	if !spaced(data, little) && spaced(data, big) {
		return big
	}
	return little
}

// mayBeText reports whether bytes of a media type may be text of an encoding that nothing names.
func mayBeText(mediaType string) bool {
	kind, _, _ := strings.Cut(strings.ToLower(mediaType), ";")
	kind = strings.TrimSpace(kind)
	if kind == "" || strings.HasPrefix(kind, "text/") || kind == "application/octet-stream" {
		return true
	}
	for _, of := range []string{"json", "xml", "yaml", "javascript", "toml", "sql", "sh", "csv"} {
		if strings.HasSuffix(kind, of) {
			return true
		}
	}
	return false
}
