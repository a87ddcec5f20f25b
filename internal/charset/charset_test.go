package charset

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

const letter = "Größe 3 m, “naïve” – key is SECRET1 and SECRET2\r\nça et là\n"

// encoded are the letter's bytes in each encoding, by the media type that comes with them.
func encoded(t *testing.T) map[string][]byte {
	out := map[string][]byte{}
	le, be, utf8b := unicode.LittleEndian, unicode.BigEndian, []byte(letter)
	put := func(name string, b []byte, err error) {
		if err != nil {
			t.Fatal(name, err)
		}
		out[name] = b
	}
	put("text/plain; n=utf-8", utf8b, nil)
	put("text/plain; n=utf-8 with mark", append([]byte("\xef\xbb\xbf"), utf8b...), nil)
	for name, e := range map[string]interface{ Bytes([]byte) ([]byte, error) }{
		"text/plain; n=utf-16 le mark":             unicode.UTF16(le, unicode.UseBOM).NewEncoder(),
		"text/plain; n=utf-16 be mark":             unicode.UTF16(be, unicode.UseBOM).NewEncoder(),
		"n=utf-16 le":                              unicode.UTF16(le, unicode.IgnoreBOM).NewEncoder(),
		"n=utf-16 be":                              unicode.UTF16(be, unicode.IgnoreBOM).NewEncoder(),
		"text/csv; charset=UTF-16LE; n=named":      unicode.UTF16(le, unicode.IgnoreBOM).NewEncoder(),
		"text/csv; charset=utf-16; n=be":           unicode.UTF16(be, unicode.IgnoreBOM).NewEncoder(),
		"application/octet-stream; n=utf-32 mark":  utf32.UTF32(utf32.LittleEndian, utf32.UseBOM).NewEncoder(),
		"text/plain; n=utf-32 be mark":             utf32.UTF32(utf32.BigEndian, utf32.UseBOM).NewEncoder(),
		"text/plain; n=utf-32 le":                  utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM).NewEncoder(),
		"text/plain; n=utf-32 be":                  utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM).NewEncoder(),
		"text/plain; n=1252":                       charmap.Windows1252.NewEncoder(),
		"; n=1252":                                 charmap.Windows1252.NewEncoder(),
		`text/html; charset="Windows-1252"`:        charmap.Windows1252.NewEncoder(),
		"text/plain; charset=cp1252":               charmap.Windows1252.NewEncoder(),
		"application/json; n=1252":                 charmap.Windows1252.NewEncoder(),
		"text/plain; charset=macintosh; n=a table": charmap.Macintosh.NewEncoder(),
	} {
		b, err := e.Bytes(utf8b)
		put(name, b, err)
	}
	return out
}

// TestDecodeWronglyNamed: bytes that are not of the charset that is named are read as what they look like; of one that is not known nothing is read.
func TestDecodeWronglyNamed(t *testing.T) {
	for _, c := range []struct {
		data, kind, want string
		ok               bool
	}{
		{"caf\xe9", "text/plain; charset=utf-8", "café", true},
		{"caf\xe9", "image/png; charset=utf-8", "", false},
		{"café", "text/plain; charset=utf-16le", "café", true},
		{"c\x00a\x00", "text/plain; charset=utf-8", "ca", true},
		{"a\x00\xff", "text/plain; charset=utf-8", "", false},
		{"café", "text/plain; charset=no-such", "", false},
	} {
		text, ok := Decode([]byte(c.data), c.kind)
		if ok != c.ok || ok && text.Text != c.want {
			t.Errorf("%q as %s: %v, %+v", c.data, c.kind, ok, text)
		}
	}
}

// TestDecode: the letter is read in each encoding, and a secret is replaced in it, while all other bytes stay.
func TestDecode(t *testing.T) {
	for kind, data := range encoded(t) {
		text, ok := Decode(data, kind)
		if !ok || text.Text != letter {
			t.Errorf("%s: %v %+v", kind, ok, text)
			continue
		}
		var spans []Span
		for _, w := range []string{"SECRET1", "SECRET2"} {
			at := strings.Index(letter, w)
			spans = append(spans, Span{at, at + len(w)})
		}
		without := strings.NewReplacer("SECRET1", "[gone]", "SECRET2", "[gone]").Replace(letter)
		changed := text.Replace(spans, "[gone]")
		again, ok := Decode(changed, kind)
		if !ok || again.Text != without {
			t.Errorf("%s: replaced: %v %+v", kind, ok, again)
		}
		if back := again.Replace(nil, ""); !bytes.Equal(back, changed) || !bytes.Equal(text.Replace(nil, "x"), data) {
			t.Errorf("%s: bytes changed that no span has", kind)
		}
	}
}

// TestOtherTexts: encodings that their bytes or a name tell, damaged ones, and what is no text at all.
func TestOtherTexts(t *testing.T) {
	koi, err := charmap.KOI8R.NewEncoder().Bytes([]byte("привет"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ kind, data, want string }{
		{"text/plain", "caf\xe9", "café"},
		{"text/plain; charset=iso-8859-1", "caf\xe9 \x80", "café €"},
		{"text/plain; charset=koi8-r", string(koi), "привет"},
		{"text/plain; charset=iso-8859-15", "5 \xa4", "5 €"},
		{"text/plain; charset=utf-8", "caf\xe9", "café"},
		{"text/plain", "größe größe gr\xf6ße", "größe größe größe"},
		{"text/plain", "", ""},
		{"image/svg+xml", "<svg>\xe9</svg>", "<svg>é</svg>"},
		{"text/plain", "\xff\xfe", ""},
		{"text/plain; charset=shift_jis", "\x83\x65\x83\x58", "-"},
		{"text/plain", "\x00\x01header SECRET tail", "-"},
		{"text/plain", "\x00\x01header SECRET tail!", "-"},
		{"text/plain", "a\x00b", "-"},
		{"text/plain", "\x01\x02\x03\xff", "-"},
		{"image/png", "caf\xe9", "-"},
		{"image/png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "-"},
		{"text/plain", "\xff\xfea\x00\x00\xd8b\x00", "-"},
		{"application/pdf", "%PDF-1.4 \xe2\xe3", "-"},
	} {
		text, ok := Decode([]byte(c.data), c.kind)
		if ok != (c.want != "-") || ok && text.Text != c.want {
			t.Errorf("%q as %s: %v %+v, want %q", c.data, c.kind, ok, text, c.want)
		}
	}
}

// FuzzDecode: what is read has no zeros, and replacing what it is by itself changes no byte.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(letter), "text/plain")
	f.Add(binary.LittleEndian.AppendUint16(nil, 0xfeff), "text/plain; charset=utf-16")
	f.Fuzz(func(t *testing.T, data []byte, kind string) {
		text, ok := Decode(data, kind)
		if !ok {
			return
		}
		if strings.Contains(text.Text, "\x00") || !utf8.ValidString(text.Text) {
			t.Errorf("%q", text.Text)
		}
		if !bytes.Equal(text.Replace([]Span{{len(text.Text), len(text.Text)}}, ""), data) {
			t.Error("bytes changed")
		}
	})
}
