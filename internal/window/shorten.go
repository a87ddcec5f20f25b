package window

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// These bounds say how much shortening leaves.
const (
	itemsKept  = 10 // of a list with more than itemsMost
	itemsMost  = 20
	stringMost = 400 // bytes of a text inside JSON
	logHead    = 20  // lines
	logTail    = 20
	frameMost  = 10 // stack frames
	wordsHead  = 120
	wordsTail  = 40
	wordBytes  = 8 // the average length of a word over which bytes are counted instead
)

// shortenJSON removes nulls and empty values from objects, cuts long lists and long texts, and keeps the order. It returns anything else unchanged, also JSON
// that is nested too deeply or is over LargeOutput.
func shortenJSON(content string) string {
	if len(content) > LargeOutput || !isJSON(content) {
		return content
	}
	dec := json.NewDecoder(strings.NewReader(content))
	dec.UseNumber()
	var out bytes.Buffer
	if _, err := jsonValue(dec, &out); err != nil {
		return content
	}
	return out.String()
}

// jsonValue copies the next value, shortened, and reports whether it is null or empty.
func jsonValue(dec *json.Decoder, out *bytes.Buffer) (empty bool, err error) {
	token, err := dec.Token()
	if err != nil {
		return false, err
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '{' {
			return jsonObject(dec, out)
		}
		return jsonArray(dec, out)
	case string:
		writeJSON(out, clipMiddle(v))
		return v == "", nil
	case nil:
		out.WriteString("null")
		return true, nil
	default:
		writeJSON(out, v)
		return false, nil
	}
}

func writeJSON(out *bytes.Buffer, v any) {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // texts, numbers and truths always encode
	out.Truncate(out.Len() - 1)
}

func jsonObject(dec *json.Decoder, out *bytes.Buffer) (empty bool, err error) {
	out.WriteByte('{')
	n := 0
	for dec.More() {
		at := out.Len()
		if n > 0 {
			out.WriteByte(',')
		}
		key, err := dec.Token()
		if err != nil {
			return false, err
		}
		writeJSON(out, key)
		out.WriteByte(':')
		none, err := jsonValue(dec, out)
		if err != nil {
			return false, err
		}
		if none {
			out.Truncate(at)
			continue
		}
		n++
	}
	out.WriteByte('}')
	_, err = dec.Token()
	return n == 0, err
}

func jsonArray(dec *json.Decoder, out *bytes.Buffer) (empty bool, err error) {
	out.WriteByte('[')
	n, cut := 0, 0
	for dec.More() {
		at := out.Len()
		if n > 0 {
			out.WriteByte(',')
		}
		if _, err := jsonValue(dec, out); err != nil {
			return false, err
		}
		n++
		if n == itemsKept {
			cut = out.Len()
		}
		if n > itemsMost {
			out.Truncate(at)
		}
	}
	if n > itemsMost {
		out.Truncate(cut)
		fmt.Fprintf(out, `,"… %d more items"`, n-itemsKept)
	}
	out.WriteByte(']')
	_, err = dec.Token()
	return n == 0, err
}

// clipMiddle cuts a long text inside JSON and says how many bytes are gone.
func clipMiddle(text string) string {
	if len(text) <= stringMost {
		return text
	}
	head := runeStart(text, stringMost-100)
	return fmt.Sprintf("%s… %d more bytes", text[:head], len(text)-head)
}

// runeStart returns the last beginning of a rune at or before i.
func runeStart(text string, i int) int {
	for i > 0 && i < len(text) && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}

var yamlEmpty = compiled(`^\s*[\w.$/"'-]+:\s*(null|~|""|''|\[\]|\{\})\s*$`)

// shortenYAML removes keys without a value, and cuts long lists of one depth.
func shortenYAML(content string) string {
	var out []string
	run, depth, cut := 0, -1, 0
	flush := func() {
		if cut > 0 {
			out = append(out, fmt.Sprintf("%s# … %d more items", strings.Repeat(" ", depth), cut))
		}
		run, cut = 0, 0
	}
	all := strings.Split(content, "\n")
	for i, line := range all {
		if yamlEmpty().MatchString(line) {
			continue
		}
		trimmed := strings.TrimLeft(line, " ")
		indent := len(line) - len(trimmed)
		switch {
		case strings.HasPrefix(trimmed, "- ") && indent == depth && run > 0:
			run++
		case strings.HasPrefix(trimmed, "- "):
			if indent <= depth || run == 0 {
				flush()
				run, depth = 1, indent
				if items(all[i:], indent) <= itemsMost {
					run = -len(all)
				}
			}
		case indent <= depth && trimmed != "":
			flush()
			depth = -1
		}
		if run > itemsKept {
			if strings.HasPrefix(trimmed, "- ") && indent == depth {
				cut++
			}
			continue
		}
		out = append(out, line)
	}
	flush()
	return strings.Join(out, "\n")
}

// items returns the number of items of the list that begins in the first line.
func items(all []string, indent int) int {
	n := 0
	for _, line := range all {
		trimmed := strings.TrimLeft(line, " ")
		if in := len(line) - len(trimmed); trimmed != "" && (in < indent || in == indent && !strings.HasPrefix(trimmed, "- ")) {
			break
		} else if in == indent && trimmed != "" {
			n++
		}
	}
	return n
}

var repeatedMark = compiled(`^\[the line before repeats \d+ times\]$`)

// shortenLog folds lines that repeat, apart from a time at their beginning, and keeps the first and the last lines.
func shortenLog(content string) string {
	var out []string
	last, repeats := "", 0
	flush := func() {
		if repeats > 0 {
			out = append(out, fmt.Sprintf("[the line before repeats %d times]", repeats))
		}
		repeats = 0
	}
	for line := range strings.SplitSeq(content, "\n") {
		line = strings.TrimSuffix(line, "\r")
		same := withoutTime(line)
		if same == last && same != "" && !repeatedMark().MatchString(line) {
			repeats++
			continue
		}
		flush()
		out = append(out, line)
		last = same
	}
	flush()
	return strings.Join(headAndTail(out, logHead, logTail), "\n")
}

var leadingTime = compiled(`^[\[("]?\d[\d:.,/TZ+ -]*[\])"]?\s*`)

func withoutTime(line string) string { return leadingTime().ReplaceAllString(line, "") }

// errorsKept is how many lines that report an error are kept between the first and the last ones.
const errorsKept = 8

var leftOut = compiled(`^\[… \d+ lines left out …\]$`)

// headAndTail keeps the first and the last lines, and those between that report an error. For each gap a line says how many are gone.
func headAndTail(all []string, head, tail int) []string {
	if len(all) <= head+tail+1 || slices.ContainsFunc(all, leftOut().MatchString) {
		return all
	}
	out := slices.Clone(all[:head])
	gap, errors := 0, 0
	flush := func() {
		if gap > 0 {
			out = append(out, fmt.Sprintf("[… %d lines left out …]", gap))
		}
		gap = 0
	}
	for _, line := range all[head : len(all)-tail] {
		if errors < errorsKept && errorScore(clipLine(line)) >= plainError {
			flush()
			errors++
			out = append(out, line)
			continue
		}
		gap++
	}
	flush()
	return append(out, all[len(all)-tail:]...)
}

var frame = compiled(`^(\s+at |\s+File "|\s+\S+\.go:\d+|\t|\s{4,}\S|[\w./*()-]+\(.*\)$|\s*\.\.\. \d+ more)`)

// shortenError keeps the message and the top frames of each stack.
func shortenError(content string) string {
	var out []string
	frames, left := 0, 0
	flush := func() {
		if left > 0 {
			out = append(out, fmt.Sprintf("[… %d frames left out …]", left))
		}
		frames, left = 0, 0
	}
	for line := range strings.SplitSeq(content, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if !frame().MatchString(line) {
			flush()
			out = append(out, clipLine(line))
			continue
		}
		if frames++; frames > frameMost {
			left++
			continue
		}
		out = append(out, clipLine(line))
	}
	flush()
	return strings.Join(headAndTail(out, 40, 20), "\n")
}

// clipLine cuts a line that is longer than any message.
func clipLine(line string) string {
	if len(line) <= 1000 {
		return line
	}
	return line[:runeStart(line, 900)] + "…"
}

// shortenText keeps the first and the last words of the text outside of code blocks. If there are hardly any spaces, it counts bytes.
func shortenText(content string) string {
	return outsideCode(content, func(prose string) string {
		if inner := strings.TrimSpace(prose); inner != "" && (inner[0] == '{' || inner[0] == '[') && json.Valid([]byte(inner)) {
			return prose
		}
		return firstAndLastWords(prose)
	}, nil)
}

const wordsMark = " words left out …]"

// firstAndLastWords cuts out the middle of a text.
func firstAndLastWords(text string) string {
	starts, ends := wordBounds(text)
	n := len(starts)
	if n > wordsHead+wordsTail+10 {
		return text[:ends[wordsHead-1]] + fmt.Sprintf(" [… %d%s ", n-wordsHead-wordsTail, wordsMark) + text[starts[n-wordsTail]:]
	}
	if most := (wordsHead + wordsTail) * wordBytes; n < 40 && len(text) > most+100 {
		head, tail := runeStart(text, wordsHead*wordBytes), runeStart(text, len(text)-wordsTail*wordBytes)
		return text[:head] + fmt.Sprintf("[… %d bytes left out …]", tail-head) + text[tail:]
	}
	return text
}

// wordBounds returns where each word begins and ends.
func wordBounds(text string) (starts, ends []int) {
	in := false
	for i, r := range text {
		if space := unicode.IsSpace(r); space == in {
			if in {
				ends = append(ends, i)
			} else {
				starts = append(starts, i)
			}
			in = !in
		}
	}
	if in {
		ends = append(ends, len(text))
	}
	return starts, ends
}

// outsideCode applies f to the text outside of fenced code blocks, and inside, unless nil, to the blocks. A block that is not closed extends to the end.
func outsideCode(text string, f, inside func(string) string) string {
	var out strings.Builder
	block := func(text string) {
		if inside != nil {
			text = inside(text)
		}
		out.WriteString(text)
	}
	for {
		open := fence(text, 0)
		if open < 0 {
			out.WriteString(f(text))
			return out.String()
		}
		out.WriteString(f(text[:open]))
		end := fence(text, open+3)
		if end < 0 {
			block(text[open:])
			return out.String()
		}
		end += 3
		block(text[open:end])
		text = text[end:]
	}
}

// fence returns the index of the next ``` at the beginning of a line, from i on; -1 if there is none.
func fence(text string, i int) int {
	for i <= len(text) {
		at := strings.Index(text[i:], "```")
		if at < 0 {
			return -1
		}
		at += i
		if strings.TrimLeft(text[strings.LastIndexByte(text[:at], '\n')+1:at], " \t") == "" {
			return at
		}
		i = at + 3
	}
	return -1
}
