// Package secrets finds keys and tokens in texts: by the rules of gitleaks, which are kept up with what providers give out.
//
// It looks at shapes. A secret without one, such as a password, is not found, and a text that only looks like a key is.
package secrets

import (
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/viper"
	"github.com/zricethezav/gitleaks/v8/config"
)

// Match is a secret in a text, in bytes, and the name of the rule that found it.
type Match struct {
	From, To int
	Rule     string
}

// rules are gitleaks' own, read once.
var rules = sync.OnceValues(func() ([]config.Rule, error) {
	v := viper.New()
	v.SetConfigType("toml")
	if err := v.ReadConfig(strings.NewReader(config.DefaultConfig)); err != nil {
		return nil, err
	}
	var raw config.ViperConfig
	if err := v.Unmarshal(&raw); err != nil {
		return nil, err
	}
	c, err := raw.Translate()
	if err != nil {
		return nil, err
	}
	var list []config.Rule
	for _, r := range c.GetOrderedRules() {
		if r.Regex != nil {
			list = append(list, r)
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
func mayMatch(r *config.Rule, lower string) bool {
	return len(r.Keywords) == 0 || slices.ContainsFunc(r.Keywords, func(k string) bool { return strings.Contains(lower, strings.ToLower(k)) })
}

func matches(r *config.Rule, text string) []Match {
	var out []Match
	for _, at := range r.Regex.FindAllStringSubmatchIndex(text, -1) {
		from, to := secret(r, at)
		s := text[from:to]
		if s == "" || r.Entropy > 0 && entropy(s) <= r.Entropy || allowed(r, text[at[0]:at[1]], s) {
			continue
		}
		out = append(out, Match{from, to, r.RuleID})
	}
	return out
}

// secret is the part of a match that is the secret: the rule's group, else the first that is not empty, else all.
func secret(r *config.Rule, at []int) (from, to int) {
	if g := 2 * r.SecretGroup; g > 0 && g+1 < len(at) && at[g] >= 0 {
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
func allowed(r *config.Rule, match, secret string) bool {
	for _, a := range r.Allowlists {
		target := secret
		if a.RegexTarget == "match" || a.RegexTarget == "line" {
			target = match
		}
		stop, _ := a.ContainsStopWord(secret)
		if a.RegexAllowed(target) || stop {
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
