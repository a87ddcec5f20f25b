package window

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/plural"
)

// sample is how many bytes of an output are read to tell its kind.
const (
	sample     = 16 << 10
	lineSample = 4 << 10 // bytes of which the lines are examined
)

// KindOf returns the kind of an output. failed says that the tool reported an error.
func KindOf(content string, failed bool) enhancer.Kind {
	head := content[:min(len(content), sample)]
	switch {
	case isBinary(content):
		return enhancer.Binary
	case isJSON(content):
		return enhancer.JSON
	case failed || stackTrace().MatchString(head):
		return enhancer.Error
	case isLog(head):
		return enhancer.Log
	case isYAML(head):
		return enhancer.YAML
	}
	return enhancer.Text
}

// isBinary reports whether a content has bytes that no text has, or is one run of base64.
func isBinary(content string) bool {
	head := content[:min(len(content), sample)]
	bad := 0
	for i := 0; i < len(head); {
		r, n := utf8.DecodeRuneInString(head[i:])
		if r == 0 {
			return true
		}
		if (r == utf8.RuneError && n == 1 && i < len(head)-utf8.UTFMax) || r < 0x20 && r != '\n' && r != '\r' && r != '\t' && r != '\f' && r != '\b' && r != 0x1b {
			bad++
		}
		i += n
	}
	return bad*20 > len(head) || isBase64(content)
}

// isBase64 reports whether a content is base64, of at least 256 bytes, with a data: head or without, that has upper case, lower case and digits.
func isBase64(content string) bool {
	text := strings.TrimSpace(content)
	if rest, ok := strings.CutPrefix(text, "data:"); ok {
		if _, after, ok := strings.Cut(rest[:min(len(rest), 200)], ";base64,"); ok {
			text = rest[strings.Index(rest, ";base64,")+len(";base64,"):]
			if len(after) < 20 {
				return false
			}
		}
	}
	if len(text) < 256 {
		return false
	}
	head := text[:256]
	if _, err := base64.StdEncoding.DecodeString(head); err != nil {
		return false
	}
	return strings.ContainsAny(head, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") && strings.ContainsAny(head, "abcdefghijklmnopqrstuvwxyz") &&
		strings.ContainsAny(head, "0123456789") && strings.IndexByte(text, ' ') < 0
}

func isJSON(content string) bool {
	text := strings.TrimSpace(content)
	return text != "" && (text[0] == '{' || text[0] == '[') && json.Valid([]byte(text))
}

var (
	stackTrace = compiled(`(?m)^(Traceback \(most recent call last\)|panic: |goroutine \d+ \[|Exception in thread|\s+at [\w.$<>]+\(|\s+at .+:\d+:\d+|\s+File ".+", line \d+)`)
	logLine    = compiled(`^\W{0,3}(\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d|\d{10}|(?i:trace|debug|info|notice|warn|warning|error|fatal|critical)\b)`)
	yamlLine   = compiled(`^\s*(- )?[\w.$/"'-]+:(\s|$)|^\s*- \S|^---$|^\s*#`)
)

// isLog reports whether a text has at least ten lines, and most of them begin with a time or a level.
func isLog(head string) bool { return mostLines(head[:min(len(head), lineSample)], 10, logLine()) }

// isYAML reports whether a text has at least five lines, and most of them are a key or an item.
func isYAML(head string) bool { return mostLines(head[:min(len(head), lineSample)], 5, yamlLine()) }

func mostLines(head string, least int, line *regexp.Regexp) bool {
	all, hits := 0, 0
	for l := range strings.Lines(head) {
		l = strings.TrimRight(l, "\r\n")
		if strings.TrimSpace(l) == "" {
			continue
		}
		all++
		if line.MatchString(l[:min(len(l), 200)]) {
			hits++
		}
		if all == 400 {
			break
		}
	}
	return all >= least && hits*10 >= all*6
}

// describeScan is how many bytes of an output, from each end, are searched for errors on every request.
const (
	describeScan  = 96 << 10
	describeLines = 100 // lines of them that are examined
)

// describe returns a few words about an output, for its pointer, with the first and the last error that it reports.
func describe(kind enhancer.Kind, content string) string {
	text := describeKind(kind, content)
	if kind == enhancer.Binary {
		return text
	}
	most := describeLines
	found := slices.DeleteFunc(problems(headTail(content, describeScan, describeScan), &most), func(p problem) bool { return p.score < plainError })
	for i, p := range found {
		if (i == 0 || i == len(found)-1) && !strings.Contains(text, p.line) {
			text += "; " + around(p.line, 100)
		}
	}
	return text
}

func describeKind(kind enhancer.Kind, content string) string {
	switch kind {
	case enhancer.JSON:
		return describeJSON(content)
	case enhancer.Log:
		return fmt.Sprintf("log of %s", plural.Count(lines(content), "line"))
	case enhancer.Error:
		return "error: " + clip(firstLine(content), 100)
	case enhancer.Binary:
		return "binary content"
	case enhancer.YAML:
		return fmt.Sprintf("YAML of %s", plural.Count(lines(content), "line"))
	}
	return fmt.Sprintf("text of %s, begins: %s", plural.Count(lines(content), "line"), clip(firstLine(content), 60))
}

func lines(content string) int {
	n := strings.Count(content, "\n")
	if !strings.HasSuffix(content, "\n") {
		n++
	}
	return n
}

func firstLine(content string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(content[:min(len(content), 1000)]), "\n")
	return strings.TrimSpace(line)
}

// clip returns the first n bytes of a text, cut at a rune, without the characters that end a pointer.
func clip(text string, n int) string {
	if len(text) > n {
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n] + "…"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '|' || r == '[' || r == ']':
			return ' '
		case r < 0x20:
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
}

// describeJSON counts the fields or items of the outermost value, in one pass over the bytes.
func describeJSON(content string) string {
	text := []byte(strings.TrimSpace(content))
	depth, n, inText := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inText:
			if c == '\\' {
				i++
			} else if c == '"' {
				inText = false
			}
		case c == '"':
			inText = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ',' && depth == 1:
			n++
		}
	}
	if len(bytes.TrimSpace(text[1:len(text)-1])) > 0 {
		n++
	}
	if text[0] == '{' {
		return fmt.Sprintf("JSON object with %s", plural.Count(n, "field"))
	}
	return fmt.Sprintf("JSON array of %s", plural.Count(n, "item"))
}
