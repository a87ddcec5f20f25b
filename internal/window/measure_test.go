package window

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/pool"
)

// measured are the kinds of lines that a reader needs.
var measured = []string{"errors", "referred", "paths", "said", "state"}

// stretch holds the messages of a digest, the ones after it, and the lines of them that a reader needs.
type stretch struct {
	name       string
	old, later []*chatctx.DraftMessage
	need       map[string][]string
}

// ownStretches returns those of testdata.
func ownStretches(t *testing.T) []stretch {
	t.Helper()
	files, err := filepath.Glob("testdata/digest/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v: %v", files, err)
	}
	var out []stretch
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s := stretch{name: strings.TrimSuffix(filepath.Base(file), ".txtar"), need: map[string][]string{}}
		w, later := newWriter(1), newWriter(2)
		for _, f := range archive.Files {
			text := strings.TrimRight(numbered(string(f.Data)), "\n")
			switch f.Name {
			case "user":
				w.user(text)
			case "assistant":
				w.assistant(text)
			case "tool":
				w.use(&pool.Result{Text: text})
			case "later":
				later.user(text)
			default:
				s.need[f.Name] = strings.Split(text, "\n")
			}
		}
		s.old, s.later = w.d.Messages, later.d.Messages
		out = append(out, s)
	}
	return out
}

var ordinary = regexp.MustCompile(`(?m)^@@ (\d+) (.*)$`)

// numbered expands the lines that "@@ N TEXT" stands for.
func numbered(text string) string {
	return ordinary.ReplaceAllStringFunc(text, func(line string) string {
		m := ordinary.FindStringSubmatch(line)
		n := 0
		fmt.Sscan(m[1], &n)
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, strings.ReplaceAll(m[2], "%d", "%[1]d")+"\n", i+1)
		}
		return strings.TrimSuffix(b.String(), "\n")
	})
}

type sampleLine struct {
	Message struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

type samplePart struct {
	Type, Text string
	Content    json.RawMessage
	Name       string
	Input      json.RawMessage
	Arguments  json.RawMessage
}

// sampleMessages reads a transcript.
func sampleMessages(raw []byte) []*chatctx.DraftMessage {
	w := newWriter(1)
	for line := range bytes.Lines(raw) {
		var l sampleLine
		if json.Unmarshal(line, &l) != nil || l.Message.Role == "" {
			continue
		}
		var parts []samplePart
		if text := ""; json.Unmarshal(l.Message.Content, &text) == nil {
			parts = []samplePart{{Type: "text", Text: text}}
		} else if json.Unmarshal(l.Message.Content, &parts) != nil {
			continue
		}
		for _, p := range parts {
			switch {
			case p.Type == "tool_result":
				w.add(&pool.Message{Role: pool.ToolRole, Result: &pool.Result{Text: sampleText(p.Content)}})
			case l.Message.Role == "toolResult":
				w.add(&pool.Message{Role: pool.ToolRole, Result: &pool.Result{Text: p.Text}})
			case p.Type == "text":
				w.add(pool.NewText(pool.Role(l.Message.Role), p.Text))
			case p.Type == "tool_use" || p.Type == "toolCall":
				w.add(&pool.Message{Role: pool.Assistant, Calls: []pool.Call{{Tool: p.Name, Arguments: append(p.Input, p.Arguments...)}}})
			}
		}
	}
	return w.d.Messages
}

func sampleText(raw json.RawMessage) string {
	text := ""
	var parts []samplePart
	if json.Unmarshal(raw, &text) != nil && json.Unmarshal(raw, &parts) == nil {
		for _, p := range parts {
			text += p.Text
		}
	}
	return text
}

// The lines to look for in real transcripts, by rules of their own.
var (
	sampleError = regexp.MustCompile(`^(?:E +)?\[?(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception): .|^\S+\(\d+,\d+\): error TS\d+|^error\[E\d+|^\S+:\d+:\d+: error: |^npm (?:ERR!|error) (?:code|Lifecycle|Missing|Cannot|Unsupported)|^FAIL |^FAILED |^fatal: |^panic: |` +
		`: No such file or directory$|: command not found$|: Permission denied$|^HTTP/[\d.]+ [45]\d\d`)
	sampleCode = regexp.MustCompile(`^\s*\d+[→:\t]|[{;,(]\s*$|=>|throw |catch`)
	sampleID   = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[A-Z]{2,6}-\d{2,6}\b|\b[0-9a-f]{12,40}\b`)
	samplePath = regexp.MustCompile(`https?://[^\s"'<>)\]}\x60]+|(?:\.{0,2}/)?(?:[\w@.-]+/)+[\w@-]+\.[a-z]{1,5}\b`)
	sampleSaid = regexp.MustCompile(`(?i)[^.!?\n]*\b(?:must|never|always|do not|don't|decided|we will use|going with|make sure)\b[^.!?\n]*`)
)

// sampleStretches cuts a transcript into turns of some size and finds the lines of each that a reader needs.
func sampleStretches(name string, all []*chatctx.DraftMessage) []stretch {
	var out []stretch
	size, from := 0, 0
	for i, m := range all {
		if startsTurn(m) && size > 8000 {
			out = append(out, needs(fmt.Sprintf("%s %d", name, len(out)+1), all[from:i], all[i:min(len(all), i+8)]))
			size, from = 0, i
		}
		size += len(messageText(m.Message))
	}
	return out
}

func needs(name string, old, later []*chatctx.DraftMessage) stretch {
	s := stretch{name: name, old: old, later: later, need: map[string][]string{}}
	add := func(kind, text string) {
		if text = strings.TrimSpace(text); text != "" && !slices.Contains(s.need[kind], text) {
			s.need[kind] = append(s.need[kind], text)
		}
	}
	after := ""
	for _, m := range later {
		after += messageText(m.Message) + "\n"
	}
	shapes := map[string]bool{}
	for _, m := range old {
		text := messageText(m.Message)
		if m.Result != nil {
			for line := range strings.Lines(text) {
				if line = strings.TrimSpace(line); sampleError.MatchString(line) && !sampleCode.MatchString(line) && !shapes[shapeOf(line)] {
					shapes[shapeOf(line)] = true
					add("errors", line)
				}
			}
		} else if len(text) < 3000 {
			for _, said := range sampleSaid.FindAllString(text, -1) {
				if said = strings.TrimSpace(said); len(said) > 15 && len(said) < 120 {
					add("said", said)
				}
			}
		}
		for kind, named := range map[string]*regexp.Regexp{"referred": sampleID, "paths": samplePath} {
			for _, n := range named.FindAllString(text, 200) {
				if strings.Contains(after, n) {
					add(kind, n)
				}
			}
		}
		if text = strings.TrimSpace(text); m.Role == pool.Assistant && text != "" {
			s.need["state"] = []string{strings.TrimRight(text[runeStart(text, max(0, len(text)-40)):], " .:")}
		}
	}
	return s
}

// survived counts the needed lines in a text.
func survived(need []string, text string) int {
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	text = flat(text)
	n := 0
	for _, line := range need {
		if line = flat(line); len(line) > 60 {
			line = line[:runeStart(line, 60)] // long ones are cut
		}
		at := atPlace().FindString(line) // a line at several places is named once
		if strings.Contains(text, line) || at != "" && strings.Contains(shapeOf(text), shapeOf(line[len(at):])) && strings.Contains(text, strings.TrimRight(at, ": -")) {
			n++
		}
	}
	return n
}

// beginningAndEnd returns the first and last tokens of a stretch, limit in all.
func beginningAndEnd(c *tokens.Counter, old []*chatctx.DraftMessage, limit int) string {
	var b strings.Builder
	for _, m := range old {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, messageText(m.Message))
		for i := range m.Calls {
			fmt.Fprintf(&b, "%s(%s)\n", m.Calls[i].Tool, m.Calls[i].Arguments)
		}
	}
	text := b.String()
	low, high := 0, 8*limit
	for low < high {
		if mid := (low + high + 1) / 2; c.Text(headTail(text, mid, mid)) <= limit {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return headTail(text, low, low)
}

// score counts the needed lines, and those that survive in a digest and in a beginning and end of the same size.
type score struct{ need, digest, ends int }

func measure(t *testing.T, stretches []stretch, limit int) map[string]score {
	t.Helper()
	c := options(0).Window(nil).Counter
	out := map[string]score{}
	for _, s := range stretches {
		digest := gather(s.old, s.later, func(m *chatctx.DraftMessage) *pool.Message { return m.Message }).within(c, limit)
		if n := c.Text(digest); n > limit {
			t.Errorf("%s: %d tokens", s.name, n)
		}
		ends := beginningAndEnd(c, s.old, limit)
		for kind, need := range s.need {
			before := out[kind]
			got := score{len(need), survived(need, digest), survived(need, ends)}
			out[kind] = score{before.need + got.need, before.digest + got.digest, before.ends + got.ends}
			if kind == "errors" && got.digest < got.need {
				t.Logf("%s: %d of %d errors; of %q in\n%s", s.name, got.digest, got.need, need, digest)
			}
		}
	}
	return out
}

// report writes the table of docs/window.md and fails if a goal is missed.
func report(t *testing.T, name string, scores map[string]score) {
	t.Helper()
	for _, kind := range measured {
		s := scores[kind]
		if s.need == 0 {
			continue
		}
		t.Logf("| %s | %s | %d | %d %% | %d %% |", name, kind, s.need, 100*s.digest/s.need, 100*s.ends/s.need)
		if s.digest < s.ends {
			t.Errorf("%s, %s: %d of %d in the digest, %d in the beginning and end", name, kind, s.digest, s.need, s.ends)
		}
	}
	if e := scores["errors"]; 100*e.digest < 95*e.need {
		t.Errorf("%s: %d of %d errors survive", name, e.digest, e.need)
	}
}

func TestDigestKeepsWhatAReaderNeeds(t *testing.T) {
	report(t, "own", measure(t, ownStretches(t), 400))
}

func TestDigestOfRealTranscripts(t *testing.T) {
	testkit.Sequential(t)
	samples := testkit.Shared(t, "samples") // real transcripts of agents that write one message a line
	files, _ := filepath.Glob(filepath.Join(samples, "*", "*.jsonl"))
	var stretches []stretch
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		stretches = append(stretches, sampleStretches(filepath.Base(file), sampleMessages(raw))...)
	}
	if len(stretches) == 0 {
		t.Skip("there are no transcripts at " + samples)
	}
	t.Logf("%d stretches", len(stretches))
	report(t, "real", measure(t, stretches, 400))
}
