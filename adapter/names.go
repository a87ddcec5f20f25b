package adapter

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
)

// Form says which names or ids a provider allows: ASCII letters, digits and the bytes of Extra, from 1 to Max of them.
type Form struct {
	Extra  string
	Max    int
	Letter bool // it must begin with a letter or _
	Exact  bool // it must have exactly Max bytes
}

func (f Form) fits(s string) bool {
	if s == "" || len(s) > f.Max || f.Exact && len(s) != f.Max {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isLetter(c) && (c < '0' || c > '9') && strings.IndexByte(f.Extra, c) < 0 {
			return false
		}
	}
	return !f.Letter || isLetter(s[0]) || s[0] == '_'
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

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
		to = m.make(name, n, try)
	}
	m.taken[to] = true
	return to
}

// make returns a name that fits, with a hash of the original one.
func (m *mapping) make(name string, occurrence, try int) string {
	sum := sha256.Sum256([]byte(name + "\x00" + strconv.Itoa(occurrence) + "\x00" + strconv.Itoa(try)))
	if m.form.Exact {
		return strings.NewReplacer("-", "a", "_", "b").Replace(base64.RawURLEncoding.EncodeToString(sum[:]))[:m.form.Max]
	}
	const tail = 8
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if clean == "" || clean[0] >= '0' && clean[0] <= '9' || clean[0] == '-' {
		clean = "x" + clean
	}
	return clean[:min(len(clean), m.form.Max-tail-1)] + "_" + hex.EncodeToString(sum[:tail/2])
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
