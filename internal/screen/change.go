package screen

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// The argument names that tools use for a file, its new content, a part of it, and the replacement of that.
var (
	pathNames    = []string{"file_path", "path", "file", "filename"}
	contentNames = []string{"content", "contents", "new_content", "text"}
	oldNames     = []string{"old_string", "old_str", "old_text", "search"}
	newNames     = []string{"new_string", "new_str", "new_text", "replace"}
)

// largestDiff bounds what is compared, in bytes.
const largestDiff = 1 << 20

// FileChange returns the change of a file according to a call's arguments: of the whole file, which it reads for this, or of a part. ok reports whether there
// is one.
func FileChange(raw json.RawMessage) (before, after, name string, ok bool) {
	var args map[string]any
	if json.Unmarshal(raw, &args) != nil {
		return "", "", "", false
	}
	one := func(names []string) (string, bool) {
		for _, n := range names {
			if s, ok := args[n].(string); ok {
				return s, true
			}
		}
		return "", false
	}
	name, named := one(pathNames)
	old, hasOld := one(oldNames)
	fresh, hasNew := one(newNames)
	if hasOld && hasNew {
		return old, fresh, name, true
	}
	content, has := one(contentNames)
	if !named || !has || len(content) > largestDiff {
		return "", "", "", false
	}
	st, err := os.Stat(name)
	if err != nil || !st.Mode().IsRegular() || st.Size() > largestDiff {
		return "", content, name, errors.Is(err, os.ErrNotExist)
	}
	is, err := os.ReadFile(name)
	return string(is), content, name, err == nil
}

// DiffLine is a line of a diff. Sign is + or - for a line of only one text, a space for one of both, and 0 for lines that are left out.
type DiffLine struct {
	Sign byte
	Text string
}

// contextLines is how many lines are shown around a change at most.
const contextLines = 3

// LineDiff returns the lines that differ, with some lines around them.
func LineDiff(before, after string) []DiffLine {
	d := diffmatchpatch.New()
	a, b, lines := d.DiffLinesToChars(before, after)
	diffs := d.DiffCharsToLines(d.DiffMain(a, b, false), lines)
	var out []DiffLine
	for i, part := range diffs {
		all := strings.Split(strings.TrimSuffix(part.Text, "\n"), "\n")
		switch part.Type {
		case diffmatchpatch.DiffInsert:
			out = diffLines(out, '+', all)
		case diffmatchpatch.DiffDelete:
			out = diffLines(out, '-', all)
		default:
			out = sameLines(out, all, i > 0, i < len(diffs)-1)
		}
	}
	return out
}

func diffLines(out []DiffLine, sign byte, lines []string) []DiffLine {
	for _, line := range lines {
		out = append(out, DiffLine{sign, Plainly(line)})
	}
	return out
}

// sameLines adds the lines after one change and before the next.
func sameLines(out []DiffLine, lines []string, after, before bool) []DiffLine {
	head, tail := 0, 0
	if after {
		head = contextLines
	}
	if before {
		tail = contextLines
	}
	if len(lines) <= head+tail {
		return diffLines(out, ' ', lines)
	}
	out = diffLines(out, ' ', lines[:head])
	out = append(out, DiffLine{0, fmt.Sprintf("… %d lines as they are", len(lines)-head-tail)})
	return diffLines(out, ' ', lines[len(lines)-tail:])
}
