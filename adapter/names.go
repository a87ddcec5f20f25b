package adapter

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Form says which names or ids a provider allows: ASCII letters, digits and the bytes of Extra, from 1 to Max of them. Names that are not allowed are replaced by
// others, so Max must leave room for as many as a request has: 9 are enough for any; 0 means no limit.
type Form struct {
	Extra  string
	Max    int
	Letter bool // it must begin with a letter or _
	Exact  bool // it must have exactly Max bytes
}

func (f Form) fits(s string) bool {
	if s == "" || f.Max > 0 && len(s) > f.Max || f.Exact && len(s) != f.Max {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isLetter(c) && !isDigit(c) && strings.IndexByte(f.Extra, c) < 0 {
			return false
		}
	}
	return !f.Letter || isLetter(s[0]) || s[0] == '_'
}

// filler returns what stands for a byte that is not allowed: _ if that is, else a letter.
func (f Form) filler() string {
	if strings.Contains(f.Extra, "_") {
		return "_"
	}
	return "x"
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// mapping makes names that fit, each only once. The result depends on the name and on the names before it.
type mapping struct {
	form  Form
	taken map[string]bool
	seen  map[string]int // how often a name came
}

func newMapping(f Form) *mapping {
	return &mapping{form: f, taken: map[string]bool{}, seen: map[string]int{}}
}

// next returns an unused name: name itself if possible.
func (m *mapping) next(name string) string {
	n := m.seen[name]
	m.seen[name]++
	to := name
	for try := 0; m.taken[to] || !m.form.fits(to); try++ {
		if try == 1000 {
			panic(fmt.Sprintf("adapter: %d names are more than the form %+v leaves room for", len(m.taken), m.form))
		}
		to = m.make(name, n, try)
	}
	m.taken[to] = true
	return to
}

// make returns a name that fits, with a hash of the original one.
func (m *mapping) make(name string, occurrence, try int) string {
	sum := sha256.Sum256([]byte(name + "\x00" + strconv.Itoa(occurrence) + "\x00" + strconv.Itoa(try)))
	if m.form.Exact {
		letters := strings.NewReplacer("-", "a", "_", "b").Replace(base64.RawURLEncoding.EncodeToString(sum[:]))
		return strings.Repeat(letters, 1+m.form.Max/len(letters))[:m.form.Max]
	}
	fill, clean := m.form.filler(), strings.Builder{}
	for _, r := range name {
		if kept := strings.ContainsRune(m.form.Extra, r) && (r == '_' || r == '-'); kept || r < 0x80 && (isLetter(byte(r)) || isDigit(byte(r))) {
			clean.WriteRune(r)
		} else {
			clean.WriteString(fill)
		}
	}
	begin := clean.String()
	if begin == "" || isDigit(begin[0]) || begin[0] == '-' {
		begin = "x" + begin
	}
	tail := fill + hex.EncodeToString(sum[:4])
	if m.form.Max == 0 {
		return begin + tail
	}
	return begin[:min(len(begin), max(m.form.Max-len(tail), 0))] + tail[:min(len(tail), m.form.Max)]
}

// names maps the names of tools: one name always to the same result.
type names struct {
	mapping *mapping
	to      map[string]string
}

func newNames(f Form) *names { return &names{newMapping(f), map[string]string{}} }

func (n *names) of(name string) string {
	to, ok := n.to[name]
	if !ok {
		to = n.mapping.next(name)
		n.to[name] = to
	}
	return to
}

// back maps sent names to the draft's names, where these differ.
func (n *names) back() map[string]string {
	var back map[string]string
	for ours, sent := range n.to {
		if ours != sent {
			if back == nil {
				back = map[string]string{}
			}
			back[sent] = ours
		}
	}
	return back
}

// one returns a single name that fits: name, or the name made from it, or fallback if name is empty.
func (f Form) one(name, fallback string) string {
	if name == "" {
		return fallback
	}
	return newMapping(f).next(name)
}
