// Package plural writes numbers of things, for every message that has one. It knows the nouns of this program and no others.
package plural

import (
	"fmt"
	"strings"
)

// Count is "1 message", "3 messages", "2 branches", "2 replies".
func Count(n int, what string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(what, "ch"):
		what += "es"
	case strings.HasSuffix(what, "ry"), strings.HasSuffix(what, "ly"):
		what = strings.TrimSuffix(what, "y") + "ies"
	default:
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// CallsWait is "1 call waits", "3 calls wait".
func CallsWait(n int) string {
	if n == 1 {
		return "1 call waits"
	}
	return Count(n, "call") + " wait"
}

// Or is "allow, deny or ask".
func Or(words []string) string {
	if last := len(words) - 1; last > 0 {
		return strings.Join(words[:last], ", ") + " or " + words[last]
	}
	return strings.Join(words, "")
}

// Are returns a number of things, and is or are.
func Are(n int, what string) string {
	if n == 1 {
		return Count(n, what) + " is"
	}
	return Count(n, what) + " are"
}
