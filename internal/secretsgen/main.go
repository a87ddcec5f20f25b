// Secretsgen writes the table of rules that package secrets embeds, from gitleaks' rules. It is a module of its own, so that nobody who builds
// chatctx needs gitleaks: run it with go generate in chatctx/secrets after raising gitleaks' version in go.mod here.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/viper"
	"github.com/zricethezav/gitleaks/v8/config"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: secretsgen FILE")
		os.Exit(2)
	}
	table, err := generate()
	if err == nil {
		err = os.WriteFile(os.Args[1], table, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "secretsgen:", err)
		os.Exit(1)
	}
}

// generate makes the table: a JSON array with a rule a line, in gitleaks' order, the same bytes for the same rules.
func generate() ([]byte, error) {
	rules, err := gitleaks()
	if err != nil {
		return nil, err
	}
	b := bytes.NewBufferString("[\n")
	for i := range rules {
		if i > 0 {
			b.WriteString(",\n")
		}
		e := json.NewEncoder(b)
		e.SetEscapeHTML(false)
		if err := e.Encode(inTable(&rules[i])); err != nil {
			return nil, err
		}
		b.Truncate(b.Len() - 1)
	}
	b.WriteString("\n]\n")
	return b.Bytes(), nil
}

// gitleaks reads the rules that look at text; others look at names of files.
func gitleaks() ([]config.Rule, error) {
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
	return slices.DeleteFunc(c.GetOrderedRules(), func(r config.Rule) bool { return r.Regex == nil }), nil
}

// tableRule is a rule as package secrets reads it.
type tableRule struct {
	ID       string         `json:"id"`
	Regex    string         `json:"regex"`
	Group    int            `json:"group,omitempty"`
	Entropy  float64        `json:"entropy,omitempty"`
	Keywords []string       `json:"keywords,omitempty"`
	Allowed  []tableAllowed `json:"allowed,omitempty"`
}

type tableAllowed struct {
	InMatch bool     `json:"in_match,omitempty"`
	Regexes []string `json:"regexes,omitempty"`
	Words   []string `json:"words,omitempty"`
}

func inTable(r *config.Rule) tableRule {
	out := tableRule{ID: r.RuleID, Regex: r.Regex.String(), Group: r.SecretGroup, Entropy: r.Entropy, Keywords: lower(r.Keywords)}
	for _, a := range r.Allowlists {
		allowed := tableAllowed{InMatch: a.RegexTarget == "match" || a.RegexTarget == "line", Words: lower(a.StopWords)}
		for _, x := range a.Regexes {
			allowed.Regexes = append(allowed.Regexes, x.String())
		}
		if allowed.Words != nil || allowed.Regexes != nil {
			out.Allowed = append(out.Allowed, allowed)
		}
	}
	return out
}

// lower gives words in lower case, sorted: gitleaks keeps some in the order of a map.
func lower(words []string) []string {
	var out []string
	for _, w := range words {
		out = append(out, strings.ToLower(w))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
