package words

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func list(text string) []string {
	var out []string
	NewSegmenter().Each(text, func(w []byte, from, to int) bool {
		out = append(out, string(w))
		return true
	})
	return out
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "",
		"Hello, World":               "hello world",
		"don't os.path foo_bar 3.14": "don t os path foo bar 3 14",
		"Straße STRASSE":             "strasse strasse",
		"e\u0301t\u00e9":             "ete",
		"Ａｂｃ１":                       "abc1",
		"東京都 タワー":                    "東 京 都 タ ワ ー",
		"สวัสดี":                     "ส วั ส ดี",
		"abc東def":                    "abc 東 def",
		"привет МИР":                 "привет мир",
		"한국어 공부":                     "한국어 공부",
		"party🎉time":                 "party 🎉 time",
		"“l’été”":                    "l ete",
		"Café naïve Müller ÅNGSTRÖM İstanbul": "cafe naive muller angstrom istanbul",
		"ёлка مُحَمَّد שָׁלוֹם Tiếng Việt":    "елка محمد שלום tieng viet",
		"か が":               "か が",
		"x\u200dy a\u00a0b": "x y a b",
	} {
		if got := strings.Join(list(text), " "); got != want {
			t.Errorf("%q has the words %q, want %q", text, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		`a b`: `[{["a"] false} {["b"] false}]`, `"a b" c*`: `[{["a" "b"] false} {["c"] true}]`, `os.pa*`: `[{["os" "pa"] true}]`,
		`"a b"*`: `[{["a" "b"] true}]`, `"open`: `[{["open"] false}]`, ` .. `: `[]`, `a."b"`: `[{["a"] false} {["b"] false}]`, `a.*`: `[{["a"] false}]`,
	} {
		raw := "["
		for i, p := range Parse(text) {
			if i > 0 {
				raw += " "
			}
			raw += "{[" + `"` + strings.Join(p.Words, `" "`) + `"] ` + map[bool]string{true: "true", false: "false"}[p.Prefix] + "}"
		}
		if raw += "]"; raw != want {
			t.Errorf("%q is %s, want %s", text, raw, want)
		}
	}
}

func TestFromJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"x\ny","b":[1,true,"\u00e9\ud83c\udf89"]}`: "a x\ny b 1 true é🎉",
		`"plain"`: "plain", `{"broken":"\u12`: "broken �12", `[1,2]`: "1 2",
	} {
		if got := strings.Join(strings.FieldsFunc(FromJSON([]byte(in)), func(r rune) bool { return r == ' ' }), " "); got != want {
			t.Errorf("%s reads %q, want %q", in, got, want)
		}
	}
}

// FuzzWords: places are within the text and in order, words are folded for good, and a text is found in itself.
func FuzzWords(f *testing.F) {
	for _, s := range []string{"Hello, World", "東京 e\u0301 Straße ﷺ", "a\x00b\xff", "ǅ İi ſ", "x\u0301\u200d🎉🇩🇪"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		last := 0
		var all []string
		NewSegmenter().Each(text, func(w []byte, from, to int) bool {
			if from < last || to <= from || to > len(text) {
				t.Fatalf("a word at %d to %d after %d", from, to, last)
			}
			last = to
			all = append(all, string(w))
			return true
		})
		q := Parse(text)
		n := 0
		for _, p := range q {
			n += len(p.Words)
		}
		if utf8.ValidString(text) && !strings.ContainsAny(text, `"*`) && n != len(all) {
			t.Fatalf("%q has %d words, the query %d", text, len(all), n)
		}
		if len(q) > 0 {
			fd := NewFinder(q)
			fd.Begin()
			if fd.Text(text); !fd.All() && !strings.ContainsAny(text, `"`) {
				t.Fatalf("%q is not found in itself", text)
			}
		}
		if raw, err := json.Marshal(text); err == nil && utf8.ValidString(text) {
			if got := list(FromJSON(raw)); !slices.Equal(got, all) {
				t.Fatalf("%q as JSON has the words %q, want %q", text, got, all)
			}
		}
	})
}

// TestVersions takes phrases of numbers, and no others, as versions.
func TestVersions(t *testing.T) {
	for text, want := range map[string]string{"1.2.3": "[{[v1 2 3] false false}]", "1.2*": "[{[v1 2] true false}]", "go 1.21": "[{[go] false false} {[v1 21] false false}]"} {
		if got, ok := Parse(text).AsVersion(); !ok || fmt.Sprint(got) != want {
			t.Errorf("%q as a version is %v %v, want %s", text, got, ok, want)
		}
	}
	for _, text := range []string{"12", "os.path", "v1.2.3", "a.1"} {
		if got, ok := Parse(text).AsVersion(); ok {
			t.Errorf("%q is taken as the version %v", text, got)
		}
	}
}

// TestParts: parts of identifiers begin at capitals and between letters and digits; what lies elsewhere in a word is not found.
func TestParts(t *testing.T) {
	for _, tt := range []struct{ search, text, want string }{
		{"http", "so parseHTTPRequest does", "HTTPRequest"}, {"HTTP", "parseHTTPRequest", "HTTPRequest"}, {"req", "parseHTTPRequest", "Request"},
		{"par", "parseHTTPRequest", "parseHTTPRequest"}, {"request par", "parseHTTPRequest", "Request"}, {"256", "sha256sum", "256sum"}, {"sum", "sha256sum", "sum"},
		{"server", "HTTP2Server", "Server"}, {"x", "iX", "X"}, {"id", "userID", "ID"}, {"name", "Gästename userName", "Name"},
		{"ttp", "parseHTTPRequest", ""}, {"arse", "parseHTTPRequest", ""}, {"prequest", "parseHTTPRequest", ""}, {"ape", "paper", ""}, {"name", "Gästename", ""},
		{`"http request"`, "parseHTTPRequest", ""}, {"cafe", "unCafé", ""},
	} {
		f := NewFinder(Parse(tt.search).AsParts())
		f.Begin()
		m, _ := f.Text(tt.text)
		if got := tt.text[m.From:m.To]; f.All() != (tt.want != "") || f.All() && got != tt.want {
			t.Errorf("%s in %s: %t %q, want %q", tt.search, tt.text, f.All(), got, tt.want)
		}
	}
}
