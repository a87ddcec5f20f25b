// Package fold folds the case of texts as Unicode says (CaseFolding.txt, C and F): texts that differ in case alone become the same.
//
// Package golang.org/x/text/cases does it too, but brings the tables of all languages into every program that uses it, some 200 KB.
package fold

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// String folds a text.
func String(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 {
			b.WriteByte(text[i])
		} else if to, ok := special[r]; ok {
			b.WriteString(to)
		} else {
			write(&b, r)
		}
		i += n
	}
	return b.String()
}

// write folds a character that special does not have.
func write(b *strings.Builder, r rune) {
	switch {
	case r < utf8.RuneSelf:
		b.WriteByte(byte(unicode.ToLower(r)))
	case r >= 0x13A0 && r <= 0x13FD || r >= 0xAB70 && r <= 0xABBF: // Cherokee folds to its capitals, which are older
		b.WriteRune(unicode.ToUpper(r))
	case r >= 0x1F80 && r <= 0x1FAF: // Greek vowels with breathing and iota: alpha, eta, omega
		b.WriteRune([]rune{0x1F00, 0x1F20, 0x1F60}[(r-0x1F80)/16] + r%8)
		b.WriteRune('\u03B9')
	default:
		b.WriteRune(unicode.ToLower(unicode.ToUpper(r)))
	}
}

// special are the other characters that fold otherwise than to the small letter of their capital.
var special = map[rune]string{
	0xDF: "ss", 0x130: "i\u0307", 0x131: "\u0131", 0x149: "\u02BCn", 0x1F0: "j\u030C", 0x390: "\u03B9\u0308\u0301", 0x3B0: "\u03C5\u0308\u0301",
	0x587: "\u0565\u0582", 0x1E96: "h\u0331", 0x1E97: "t\u0308", 0x1E98: "w\u030A", 0x1E99: "y\u030A", 0x1E9A: "a\u02BE", 0x1E9E: "ss",
	0x1F50: "\u03C5\u0313", 0x1F52: "\u03C5\u0313\u0300", 0x1F54: "\u03C5\u0313\u0301", 0x1F56: "\u03C5\u0313\u0342", 0x1FB2: "\u1F70\u03B9",
	0x1FB3: "\u03B1\u03B9", 0x1FB4: "\u03AC\u03B9", 0x1FB6: "\u03B1\u0342", 0x1FB7: "\u03B1\u0342\u03B9", 0x1FBC: "\u03B1\u03B9",
	0x1FC2: "\u1F74\u03B9", 0x1FC3: "\u03B7\u03B9", 0x1FC4: "\u03AE\u03B9", 0x1FC6: "\u03B7\u0342", 0x1FC7: "\u03B7\u0342\u03B9",
	0x1FCC: "\u03B7\u03B9", 0x1FD2: "\u03B9\u0308\u0300", 0x1FD3: "\u03B9\u0308\u0301", 0x1FD6: "\u03B9\u0342", 0x1FD7: "\u03B9\u0308\u0342",
	0x1FE2: "\u03C5\u0308\u0300", 0x1FE3: "\u03C5\u0308\u0301", 0x1FE4: "\u03C1\u0313", 0x1FE6: "\u03C5\u0342", 0x1FE7: "\u03C5\u0308\u0342",
	0x1FF2: "\u1F7C\u03B9", 0x1FF3: "\u03C9\u03B9", 0x1FF4: "\u03CE\u03B9", 0x1FF6: "\u03C9\u0342", 0x1FF7: "\u03C9\u0342\u03B9",
	0x1FFC: "\u03C9\u03B9", 0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st", 0xFB13: "\u0574\u0576",
	0xFB14: "\u0574\u0565", 0xFB15: "\u0574\u056B", 0xFB16: "\u057E\u0576", 0xFB17: "\u0574\u056D",
}
