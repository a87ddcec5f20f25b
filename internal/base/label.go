package base

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/pool"
)

// MaxLabels is the largest number of labels of a context.
const MaxLabels = 100

// maxLabel is the largest length of a label in bytes.
const maxLabel = 200

// CheckLabel returns an ErrInvalid if a label is not allowed.
func CheckLabel(label string) error {
	why := ""
	switch {
	case label == "":
		return Invalidf("the label is empty: give it a name")
	case len(label) > maxLabel:
		why = "is longer than 200 bytes"
	case !utf8.ValidString(label) || strings.ContainsFunc(label, func(c rune) bool { return unicode.IsControl(c) || c == utf8.RuneError }):
		why = "holds a control character, or is not UTF-8"
	case strings.TrimSpace(label) != label:
		why = "begins or ends with a space"
	case branchstore.IsStep(label):
		why = "means a folder in a path, so that no address reaches it"
	case label[0] == '-':
		why = "begins with a dash"
	default:
		return nil
	}
	return Invalidf("the label %q %s: take another one", label, why)
}

// LabelKey is the key that leads from a label to a context that has it.
func LabelKey(label string, id pool.ID) []byte { return append(LabelPrefix(label), id[:]...) }

// LabelPrefix begins the keys of a label.
func LabelPrefix(label string) []byte { return append([]byte(label), 0) }

// OfLabelKey returns the label and the context of a key; ok is false if it is no such key.
func OfLabelKey(key []byte) (label string, id pool.ID, ok bool) {
	n := len(key) - len(id) - 1
	if n < 1 || key[n] != 0 {
		return "", id, false
	}
	return string(key[:n]), pool.ID(key[n+1:]), true
}

// WithLabels returns labels with more added, sorted and without duplicates. It returns ErrInvalid if a label is not allowed or there are too many.
func WithLabels(labels []string, more ...string) ([]string, error) {
	for _, label := range more {
		if err := CheckLabel(label); err != nil {
			return nil, err
		}
		if at, has := slices.BinarySearch(labels, label); !has {
			labels = slices.Insert(slices.Clone(labels), at, label)
		}
	}
	if len(labels) > MaxLabels {
		return nil, Invalidf("a conversation has at most %d labels, not %d", MaxLabels, len(labels))
	}
	return labels, nil
}

// WithoutLabel returns labels without one.
func WithoutLabel(labels []string, label string) []string {
	return slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return l == label })
}
