package tokens

import (
	"encoding/base64"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

var encodings = []Encoding{O200k, CL100k, P50k, P50kEdit, R50k}

// plain returns the library's encoder as the library makes it, to compare ours with.
var plain = func() func(e Encoding) *tiktoken.Tiktoken {
	var once sync.Once
	made := map[Encoding]*tiktoken.Tiktoken{}
	return func(e Encoding) *tiktoken.Tiktoken {
		once.Do(func() {
			tiktoken.SetBpeLoader(loader.NewOfflineLoader())
			for _, e := range encodings {
				t, err := tiktoken.GetEncoding(string(e))
				if err != nil {
					panic(err)
				}
				made[e] = t
			}
		})
		return made[e]
	}
}()

func TestCountKnownTexts(t *testing.T) {
	texts := []string{
		"", "a", " ", "\n", "hello world", "It's WE'RE we'Ll x'S 'tis", "   leading", "trailing   ", "a  b   c\n\n  d\r\n\te",
		"HTTPServer camelCase SCREAMING_CASE", "123456789 1 22 333 4444", "漢字ABC漢字abc", "é e\u0301 \u0301A \u0301a \u0301\u0301", "path/to/file///x\n/y", "THE'REDUCE WE'STRONG I'LLUSTRATE 'Tomorrow 'Difficult",
		"🙂🙃👨‍👩‍👧", "<|endoftext|>", "\u2028\u0085 x", "Ǆǅǆ ʰʰA", "ſ's 'ſ K'K", "{\"a\":[1,2,3],\"b\":null}\n", "https://example.com/a?b=c&d=%20", "\xff\xfe broken \xc3", "one\u00a0two",
	}
	for _, e := range encodings {
		for _, text := range texts {
			if got, want := e.Count(text), len(plain(e).EncodeOrdinary(text)); got != want {
				t.Errorf("%s %q: %d tokens, the library says %d", e, text, got, want)
			}
		}
	}
}

// words for random texts: the cases that the expressions distinguish.
var words = []string{"a", "B", "ab", "AB", "Ab", "ñ", "Ñ", "漢", "ʰ", "ǅ", "\u0301", "1", "٣", "½", "'", "'s", "'LL", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u2028", "/", ".", "=", "🙂", "\U0001d400", "\U00010400", "\xff", "_", "-"}

func TestCountIsTheLibrarys(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range 20000 {
		var b strings.Builder
		for range 1 + rng.Intn(12) {
			w := words[rng.Intn(len(words))]
			b.WriteString(strings.Repeat(w, 1+rng.Intn(3)))
		}
		compare(t, b.String())
		if t.Failed() {
			return
		}
	}
}

func compare(t *testing.T, text string) {
	t.Helper()
	for _, e := range encodings {
		if got, want := e.Count(text), len(plain(e).EncodeOrdinary(text)); got != want {
			t.Errorf("%s %.200q, %d bytes: %d tokens, the library says %d", e, text, len(text), got, want)
		}
	}
}

func FuzzCount(f *testing.F) {
	f.Add("It's 12345 漢字ABC\u0301  \r\n x")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 200 {
			compare(t, text)
		}
	})
}

// hostile returns texts of about n bytes on which a backtracking matcher or a quadratic merge is slow.
func hostile(n int) map[string]string {
	rng := rand.New(rand.NewSource(2))
	raw := make([]byte, n/4*3)
	rng.Read(raw)
	letters := make([]byte, n)
	for i := range letters {
		letters[i] = "abcdefghijklmnopqrstuvwxyz"[rng.Intn(26)]
	}
	return map[string]string{
		"one letter":  strings.Repeat("a", n),
		"letters":     string(letters),
		"capitals":    strings.Repeat("ABCD", n/4),
		"base64":      base64.StdEncoding.EncodeToString(raw),
		"hex":         fmt.Sprintf("%x", raw[:n/2]),
		"digits":      strings.Repeat("1234567890", n/10),
		"signs":       strings.Repeat("=-", n/2),
		"blanks":      strings.Repeat(" ", n),
		"line ends":   strings.Repeat("\n", n),
		"han":         strings.Repeat("这是一个测试文本没有空格", n/36),
		"han capital": strings.Repeat("漢ABCDE", n/8),
		"marks":       strings.Repeat("\u0301", n/2),
		"numbers":     strings.Repeat("[1,2,3,45]", n/10),
		"invalid":     strings.Repeat("\xff", n/4),
		"apostrophes": strings.Repeat("'", n),
	}
}

// TestLongPiecesAreTheLibrarys: pieces of up to 1 KB count as the library says, until a text has 64 KB of those that are too long for us.
func TestLongPiecesAreTheLibrarys(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	for n := range 60 {
		size := []int{longest - 1, longest, longest + 1, longestWhole - 1, longestWhole}[n%5]
		if n >= 30 {
			size = longest + rng.Intn(longestWhole-longest)
		}
		var b strings.Builder
		for len(b.String()) < size {
			b.WriteString([]string{"a", "e", "n", "st", "ing", "漢", "ñ", "ก"}[rng.Intn(8)])
		}
		word := strings.ToValidUTF8(b.String()[:size-1], "")
		compare(t, "x "+word+strings.Repeat(" ", size)+"y"+strings.Repeat("=-", size/2))
	}
}

// TestCutRunsStayClose: cutting a piece adds at most one token for each cut.
func TestCutRunsStayClose(t *testing.T) {
	for name, text := range hostile(4000) {
		for _, e := range encodings {
			got, want := e.Count(text), len(plain(e).EncodeOrdinary(text))
			if got < want-4000/cutLength || got > want+2*4000/cutLength {
				t.Errorf("%s %s: %d tokens, the library says %d", e, name, got, want)
			}
		}
	}
}

func BenchmarkCountWithoutSpace(b *testing.B) {
	texts := hostile(1_000_000)
	for _, e := range encodings {
		e.Count("load")
		for name, text := range texts {
			b.Run(string(e)+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					e.Count(text)
				}
			})
		}
	}
}

func BenchmarkCountProse(b *testing.B) {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog, and doesn't look back. ", 15_000)
	for _, e := range encodings {
		e.Count("load")
		b.Run(string(e), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				e.Count(text)
			}
		})
	}
}

func BenchmarkReadVocabulary(b *testing.B) {
	for _, e := range []Encoding{O200k, CL100k, P50k, R50k} {
		b.Run(string(e), func(b *testing.B) {
			for b.Loop() {
				readVocabulary(e)
			}
		})
	}
}

// BenchmarkOneWord is a word of 5 MB.
func BenchmarkOneWord(b *testing.B) {
	word := hostile(5_000_000)["letters"]
	for _, e := range encodings {
		b.Run(string(e), func(b *testing.B) {
			for b.Loop() {
				e.Count(word)
			}
		})
	}
}
