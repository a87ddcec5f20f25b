package window

import (
	"slices"
	"strings"
	"testing"
)

// TestLiteralsLoseNoMatch: an expression matches with its literals what it matches without.
func TestLiteralsLoseNoMatch(t *testing.T) {
	var texts []string
	for _, file := range []string{"testdata/facts-near.jsonl", "testdata/facts-held.jsonl", "testdata/facts-seen.jsonl"} {
		for _, s := range sentencesOf(t, file) {
			texts = append(texts, s.Text, strings.ToUpper(s.Text))
		}
	}
	patterns := parseFacts(factPatterns)
	for _, p := range patterns {
		texts = append(append(texts, p.is...), p.isNot...)
	}
	texts = append(texts, "", "no", "NO.", "éno", "noé", "İ must", "(must)", "a\tmust\n\nnot")
	all := make([]foldedText, len(texts))
	for i, text := range texts {
		all[i] = folded(text)
	}
	run, skipped := 0, 0
	for _, p := range patterns {
		for _, e := range alternatives(p.expression) {
			f := prefilter(e)
			for _, text := range all {
				if f.mayMatch(text) {
					run++
				} else if skipped++; f.compiled().MatchString(text.text) {
					t.Errorf("%q is matched by %s, and holds none of %v", text.text, e, f.literals)
				}
			}
		}
	}
	if run > skipped/10 {
		t.Errorf("%d expressions were run and %d not", run, skipped)
	}
}

func TestLiterals(t *testing.T) {
	for expression, want := range map[string][]literal{
		`must`:                {{"MUST", false, false}},
		`\bmust\b`:            {{"MUST", true, true}},
		`\b(must|shall) not`:  {{"MUST", true, false}, {"SHALL", true, false}},
		`\b(must|shall)\s+be`: {{"MUST", true, true}, {"SHALL", true, true}},
		`no(thing)?\s+x`:      {{"NO", false, false}},
		`(a|\d)`:              nil,
		`\w+`:                 nil,
		`(?:ab)*`:             nil,
		`(ab)+`:               {{"AB", false, false}},
		`[ãa]o sei`:           {{"O SEI", false, false}},
		`\b不要`:                {{"不要", false, false}},
	} {
		if got := prefilter(expression).literals; !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", expression, got, want)
		}
	}
}

func TestAlternatives(t *testing.T) {
	for expression, want := range map[string][]string{
		`a`:                {"a"},
		`a|(b|c)|[|)]|\||`: {"a", "(b|c)", "[|)]", `\|`, ""},
	} {
		if got := alternatives(expression); !slices.Equal(got, want) {
			t.Errorf("%s: %q", expression, got)
		}
	}
}
