package window

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// TestPatternsOfFactsHaveCases: every pattern of facts.txt matches its cases, and each case is told as what it says.
func TestPatternsOfFactsHaveCases(t *testing.T) {
	patterns := parseFacts(factPatterns)
	if len(patterns) < 30 {
		t.Fatalf("%d patterns", len(patterns))
	}
	for _, p := range patterns {
		if !slices.Contains([]string{"any", "user", "assistant"}, p.who) ||
			!slices.Contains([]string{"idle", "asking", "decisions", "constraints", "outcomes", "details"}, p.kind) {
			t.Errorf("%s %s: no such side or kind", p.who, p.kind)
		}
		re, err := regexp.Compile("(?i)" + p.expression)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.is) == 0 || len(p.isNot) == 0 {
			t.Errorf("%s has no cases of both kinds", p.expression)
		}
		for _, s := range p.is {
			if !re.MatchString(s) {
				t.Errorf("%q is not matched by %s", s, p.expression)
			}
		}
		for _, s := range p.isNot {
			if re.MatchString(s) {
				t.Errorf("%q is matched by %s", s, p.expression)
			}
		}
	}
}

// sentence is a line of the sentences in testdata: one in a chat, with the part that a digest has to keep.
type sentence struct {
	Lang, Text, Kind, Must string
	Role                   pool.Role
	Fact                   bool
}

func sentencesOf(t *testing.T, file string) []sentence {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []sentence
	for line := range bytes.Lines(raw) {
		var s sentence
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// chat puts sentences into a conversation, each between others in a message that says nothing else.
func chat(all ...sentence) []*chatctx.DraftMessage {
	w := newWriter(1)
	w.user("hello there")
	for _, s := range all {
		w.add(pool.NewText(s.Role, "Hm, well. "+s.Text+"\nSo it goes."))
	}
	w.assistant("Good. That is it.")
	return w.d.Messages
}

// factsKept returns a digest of a conversation in so many tokens, without the first request, the last words and the sentences' number.
func factsKept(t *testing.T, messages []*chatctx.DraftMessage, limit int) string {
	t.Helper()
	c := options(0).Window(nil).Counter
	digest := gather(messages, nil, func(m *chatctx.DraftMessage) *pool.Message { return m.Message }).within(c, limit)
	if n := c.Text(digest); n > limit {
		t.Errorf("%d tokens, more than %d: %s", n, limit, digest)
	}
	facts := parseDigest(digest)
	facts.lists[askedKind], facts.lists[stateKind] = nil, nil
	_, lines, _ := strings.Cut(facts.String(), "\n")
	return lines
}

// held measures sentences: the share of facts that survive alone and in conversations of ten, and of others that are kept as one.
func held(t *testing.T, all []sentence) (alone, together, idle float64) {
	t.Helper()
	var facts, others []sentence
	for _, s := range all {
		if s.Fact {
			facts = append(facts, s)
		} else {
			others = append(others, s)
		}
	}
	n, m := 0, 0
	for _, s := range facts {
		if strings.Contains(factsKept(t, chat(s), 400), s.Must) {
			n++
		} else {
			t.Logf("lost: %s %s: %s", s.Lang, s.Kind, s.Text)
		}
	}
	for some := range slices.Chunk(facts, 10) {
		digest := factsKept(t, chat(some...), 400)
		for _, s := range some {
			if strings.Contains(digest, s.Must) {
				m++
			}
		}
	}
	asFact := 0
	for _, s := range others {
		if digest := factsKept(t, chat(s), 400); digest != "" {
			asFact++
			t.Logf("kept: %s: %s", s.Lang, digest)
		}
	}
	share := func(n int, of []sentence) float64 { return 100 * float64(n) / float64(len(of)) }
	return share(n, facts), share(m, facts), share(asFact, others)
}

// TestDigestKeepsPlainFacts: the seen and held sentences were written by one who had not seen the patterns, and the held ones were not looked at before the
// patterns were done; they gave 94.6 % and 1.1 %. The near ones were written beside the patterns.
func TestDigestKeepsPlainFacts(t *testing.T) {
	testkit.Sequential(t)
	for _, file := range []string{"testdata/facts-near.jsonl", "testdata/facts-held.jsonl", "testdata/facts-seen.jsonl"} {
		alone, together, idle := held(t, sentencesOf(t, file))
		t.Logf("%s: %.1f %% of the facts survive, %.1f %% among ten; %.1f %% of the others are kept", file, alone, together, idle)
		if alone < 90 || together < 90 || idle > 5 {
			t.Errorf("%s misses 90 %%, 90 %% or 5 %%", file)
		}
	}
}

// TestSentencesEnd: texts with a bar where a sentence ends.
func TestSentencesEnd(t *testing.T) {
	for _, want := range []string{
		"One line|And another",
		"It works.|Use it!|Why?|so;|three",
		"a?b!c.d stay one",
		"Ask Dr. Weber, Mr. Li or Prof. Ito.|They know.",
		"Am 3. Mai oder am 21. Juni",
		"See e.g. this one, i.e. that",
		"It is so. but then it goes on",
		"It is done.|but not all",
		"This is the end.|and we go",
		"See No. 12 and fig. 3",
		"That was the answer.|12 more came",
		"Keep v1.2.|It is old",
		"彼は行く。|次は？|はい！|いいえ；|終わり",
		"The end.",
	} {
		text := strings.ReplaceAll(strings.ReplaceAll(want, "|", " "), "One line ", "One line\n")
		var got []string
		for s := range sentences(text) {
			got = append(got, s)
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%q ends as %q, want %q", text, strings.Join(got, "|"), want)
		}
	}
}

// TestLongSentencesAreCutToTheirFact: of a sentence that is too long, the part stays where most
// speaks for a fact, and what speaks for its own kind counts twice.
func TestLongSentencesAreCutToTheirFact(t *testing.T) {
	idle := strings.Repeat("tree river cloud stone ", 20)
	for _, c := range []struct {
		text, holds string
		kind        int
		cut         bool
	}{
		{"you must not change the schema", "you must not change the schema", constraintKind, false},
		{"you must not change the schema " + idle, "you must not change the schema", constraintKind, false},
		{idle + "you must not change the schema", "you must not change the schema", constraintKind, true},
		{idle + "you must not change the schema " + idle, "you must not change the schema", constraintKind, true},
		{"order 4521 " + idle + "you must not change the schema", "you must not change the schema", constraintKind, true},
		{"you must not change the schema " + idle + "order 4521", "you must not change the schema", constraintKind, false},
		{"number 4 " + idle + "ticket 1 of ticket 2 by ticket 3 " + idle, "ticket 1 of ticket 2 by ticket 3", detailKind, true},
	} {
		n := 0
		userSays().find(c.text, func(kind int, said string) {
			n++
			at := strings.Index(said, c.holds)
			if kind != c.kind || at < 0 ||
				!strings.HasSuffix(strings.TrimSpace(c.text), strings.TrimPrefix(said, "…")) ||
				at+len(c.holds) > saidBytes || strings.HasPrefix(said, "…") != c.cut {
				t.Errorf("%q is %s %q, want %q in its first %d bytes", c.text, kinds[kind].name, said, c.holds, saidBytes)
			}
		})
		if n != 1 {
			t.Errorf("%q has %d facts", c.text, n)
		}
	}
}
