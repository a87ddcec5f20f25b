package approval

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/internal/jsontree"
)

// step is one step into arguments: to a member by name, to an element by number, or to each element.
type step struct {
	name  string
	index int
	kind  stepKind
}

type stepKind byte

const (
	stepName stepKind = iota
	stepIndex
	stepEach
)

// All names all arguments together, as an object.
const All = "{}"

// parsePath parses the name of an argument: names separated by dots, [N] for an element, [*] for each. A name with characters other than letters, digits,
// _, - and $ is quoted as in JSON, and so is the word tool.
func parsePath(s string) ([]step, error) {
	if s == All {
		return nil, nil
	}
	var steps []step
	rest := s
	for first := true; rest != "" || first; first = false {
		var one step
		var err error
		switch {
		case strings.HasPrefix(rest, "[") && !first:
			one, rest, err = parseIndex(rest)
		case first:
			one, rest, err = parseName(rest)
		case strings.HasPrefix(rest, "."):
			one, rest, err = parseName(rest[1:])
		default:
			err = fmt.Errorf("a dot or [ is missing before %q", rest)
		}
		if err != nil {
			return nil, fmt.Errorf("the argument %q: %w", s, err)
		}
		steps = append(steps, one)
	}
	return steps, nil
}

func parseIndex(s string) (step, string, error) {
	word, rest, ok := strings.Cut(s[1:], "]")
	if word == "*" && ok {
		return step{kind: stepEach}, rest, nil
	}
	n, err := strconv.Atoi(word)
	if !ok || err != nil || n < 0 || strconv.Itoa(n) != word {
		return step{}, "", fmt.Errorf("%q is not one of [0], [1] … and [*]", s)
	}
	return step{kind: stepIndex, index: n}, rest, nil
}

func parseName(s string) (step, string, error) {
	if strings.HasPrefix(s, `"`) {
		end := quotedEnd(s)
		var name string
		if end < 0 || json.Unmarshal([]byte(s[:end]), &name) != nil {
			return step{}, "", fmt.Errorf("the quoted name %s does not end", s)
		}
		return step{name: name}, s[end:], nil
	}
	end := strings.IndexFunc(s, func(r rune) bool { return strings.ContainsRune(`.[]"{}' `, r) })
	if end < 0 {
		end = len(s)
	}
	if end == 0 {
		return step{}, "", fmt.Errorf("a name is missing before %q", s)
	}
	return step{name: s[:end]}, s[end:], nil
}

// quotedEnd returns the end of a quoted text at the beginning of s, -1 if it has none.
func quotedEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// sure finds the values that a path certainly names: names must match exactly and [] needs lists. ok is false if there is no such value.
func sure(v *jsontree.Value, path []step) ([]*jsontree.Value, bool) {
	for i, s := range path {
		switch {
		case s.kind == stepName:
			v = v.Get(s.name)
		case v.Kind != jsontree.List:
			return nil, false
		case s.kind == stepIndex && s.index < len(v.List):
			v = v.List[s.index]
		case s.kind == stepIndex:
			return nil, false
		default:
			return sureEach(v.List, path[i+1:])
		}
		if v == nil {
			return nil, false
		}
	}
	return []*jsontree.Value{v}, true
}

func sureEach(list []*jsontree.Value, rest []step) ([]*jsontree.Value, bool) {
	var all []*jsontree.Value
	for _, one := range list {
		found, ok := sure(one, rest)
		if !ok {
			return nil, false
		}
		all = append(all, found...)
	}
	return all, len(all) > 0
}

// possible calls found with each value that a path may name: it ignores the case of names, looks into lists on the way, and takes a value that is no list
// for each of its elements.
func possible(v *jsontree.Value, path []step, found func(*jsontree.Value)) {
	if len(path) == 0 {
		found(v)
		return
	}
	s, rest := path[0], path[1:]
	switch {
	case s.kind == stepEach && v.Kind != jsontree.List:
		possible(v, rest, found)
	case s.kind == stepIndex && v.Kind == jsontree.List && s.index < len(v.List):
		possible(v.List[s.index], rest, found)
	case s.kind != stepIndex && v.Kind == jsontree.List:
		if s.kind == stepEach {
			path = rest
		}
		for _, one := range v.List {
			possible(one, path, found)
		}
	case s.kind == stepName:
		for _, m := range v.Members {
			if fold(m.Name) == fold(s.name) {
				possible(m.Value, rest, found)
			}
		}
	}
}

// below calls found with a value and all values in it.
func below(v *jsontree.Value, found func(*jsontree.Value)) {
	found(v)
	for _, one := range v.List {
		below(one, found)
	}
	for _, m := range v.Members {
		below(m.Value, found)
	}
}

// differByCase reports whether an object has keys that differ only in case.
func differByCase(v *jsontree.Value) bool {
	seen := map[string]bool{}
	for _, m := range v.Members {
		name := fold(m.Name)
		if seen[name] || differByCase(m.Value) {
			return true
		}
		seen[name] = true
	}
	return slices.ContainsFunc(v.List, differByCase)
}
