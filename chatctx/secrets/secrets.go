// Package secrets finds keys and tokens in texts: by the rules of gitleaks, which are kept up with what providers give out.
//
// It looks at shapes. A secret without one, such as a password, is not found, and a text that only looks like a key is.
package secrets

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Match is a secret in a text, in bytes, and the name of the rule that found it.
type Match struct {
	From, To int
	Rule     string
}

//go:generate go run -C ../../internal/secretsgen . ../../chatctx/secrets/rules.json

//go:embed rules.json
var table []byte

// rule is a shape of secrets, as it lies in the table that internal/secretsgen makes of gitleaks' rules.
type rule struct {
	ID       string      `json:"id"`
	Regex    string      `json:"regex"`
	Group    int         `json:"group,omitempty"`    // of the expression, that is the secret; 0: the first that is not empty
	Entropy  float64     `json:"entropy,omitempty"`  // that a secret has more of, in bits a character
	Keywords []string    `json:"keywords,omitempty"` // in lower case; one of them is in every text with such a secret
	Allowed  []allowance `json:"allowed,omitempty"`

	expression func() *regexp.Regexp
}

// allowance are matches of a rule that are no secrets: examples and words that only look like keys.
type allowance struct {
	InMatch bool     `json:"in_match,omitempty"` // Regexes look at all that the rule's expression found, not only at the secret
	Regexes []string `json:"regexes,omitempty"`
	Words   []string `json:"words,omitempty"` // in lower case, anywhere in the secret

	expressions func() []*regexp.Regexp
}

// rules are read once, and each expression is compiled when a text has one of its keywords.
var rules = sync.OnceValues(func() ([]rule, error) {
	var list []rule
	if err := json.Unmarshal(table, &list); err != nil {
		return nil, fmt.Errorf("the table of rules for secrets is damaged: %w", err)
	}
	for i := range list {
		r := &list[i]
		r.expression = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(r.Regex) })
		for k := range r.Allowed {
			a := &r.Allowed[k]
			a.expressions = sync.OnceValue(func() []*regexp.Regexp {
				var out []*regexp.Regexp
				for _, x := range a.Regexes {
					out = append(out, regexp.MustCompile(x))
				}
				return out
			})
		}
	}
	return list, nil
})

// Find gives the secrets in a text, in order; none overlaps another. The error is for rules that cannot be read.
func Find(text string) ([]Match, error) {
	all, err := rules()
	if err != nil {
		return nil, err
	}
	lower := strings.ToLower(text)
	var found []Match
	for i := range all {
		if r := &all[i]; mayMatch(r, lower) {
			found = append(found, matches(r, text)...)
		}
	}
	slices.SortStableFunc(found, func(a, b Match) int {
		if a.From != b.From {
			return a.From - b.From
		}
		return b.To - a.To
	})
	var out []Match
	for _, m := range found {
		if n := len(out); n > 0 && m.From < out[n-1].To {
			out[n-1].To = max(out[n-1].To, m.To)
			continue
		}
		out = append(out, m)
	}
	return out, nil
}

// mayMatch reports whether a rule's expression is to be tried: it takes much longer than looking for its words.
func mayMatch(r *rule, lower string) bool {
	return len(r.Keywords) == 0 || slices.ContainsFunc(r.Keywords, func(k string) bool { return strings.Contains(lower, k) })
}

func matches(r *rule, text string) []Match {
	var out []Match
	for _, at := range r.expression().FindAllStringSubmatchIndex(text, -1) {
		from, to := secret(r, at)
		s := text[from:to]
		if s == "" || r.Entropy > 0 && entropy(s) <= r.Entropy || allowed(r, text[at[0]:at[1]], s) {
			continue
		}
		out = append(out, Match{from, to, r.ID})
	}
	return out
}

// secret is the part of a match that is the secret: the rule's group, else the first that is not empty, else all.
func secret(r *rule, at []int) (from, to int) {
	if g := 2 * r.Group; g > 0 && g+1 < len(at) && at[g] >= 0 {
		return at[g], at[g+1]
	}
	for g := 2; g+1 < len(at); g += 2 {
		if at[g] >= 0 && at[g+1] > at[g] {
			return at[g], at[g+1]
		}
	}
	return at[0], at[1]
}

// allowed reports whether a rule knows a match as none: examples and words that only look like keys.
func allowed(r *rule, match, secret string) bool {
	lower := strings.ToLower(secret)
	for i := range r.Allowed {
		a, target := &r.Allowed[i], secret
		if a.InMatch {
			target = match
		}
		if slices.ContainsFunc(a.expressions(), func(x *regexp.Regexp) bool { return x.MatchString(target) }) ||
			slices.ContainsFunc(a.Words, func(w string) bool { return strings.Contains(lower, w) }) {
			return true
		}
	}
	return false
}

// entropy is Shannon's, in bits a character.
func entropy(s string) float64 {
	counts := map[rune]int{}
	n := 0
	for _, c := range s {
		counts[c]++
		n++
	}
	var sum float64
	for _, k := range counts {
		p := float64(k) / float64(n)
		sum -= p * math.Log2(p)
	}
	return sum
}
