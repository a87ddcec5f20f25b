package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/internal/settings"
)

// noCommand is the error for a word that stands in a command's place.
func (p *parsed) noCommand(word string) error {
	var names []string
	for _, c := range p.below(allCommands()) {
		if !c.hidden {
			names = append(names, c.name)
		}
	}
	before := strings.TrimLeft(p.name()+" ", " ")
	if other := p.synonym(strings.ToLower(word)); other != "" {
		return &usageError{fmt.Sprintf("no %scommand %q", before, word), "here it is chatctx " + before + other}
	}
	hint := strings.Join(strings.Fields("chatctx help "+p.name()), " ") + " lists what there is"
	return &usageError{fmt.Sprintf("no %scommand %q", before, word), suggest(word, names, "chatctx "+before, hint)}
}

// noFlag is the error for a flag that nobody knows.
func (o *orderer) noFlag(typed, name string) error {
	var names []string
	all, _ := o.known()
	for _, f := range all {
		if len(f.name) > 1 {
			names = append(names, f.name)
		}
	}
	hint := "chatctx " + strings.TrimLeft(o.out.name()+" --help", " ") + " lists the flags; -- ends them: put it before text that begins with a dash"
	if s, ok := settings.Lookup(strings.ReplaceAll(name, "-", "_")); ok && s.Name == strings.ReplaceAll(name, "-", "_") && slices.Contains(names, "model") {
		return &usageError{"no flag " + typed, "it is a setting of the branch: chatctx config " + s.Name + "=…"}
	}
	return &usageError{"no flag " + typed, suggest(name, names, "--", hint)}
}

// noShort is noFlag for what stands behind one dash: a letter, or a long flag that lacks a dash.
func (o *orderer) noShort(whole string) error {
	name, _, _ := strings.Cut(whole, "=")
	if whole == "c" {
		return &usageError{"no flag -c", "send goes on in the current conversation; --context names another"}
	}
	if o.knows(name) {
		return &usageError{"no flag -" + whole, "did you mean --" + whole + "?"}
	}
	return o.noFlag("-"+whole, name)
}

// suggest names the candidate most like word, or else returns the hint.
func suggest(word string, candidates []string, before, hint string) string {
	best, score := "", 0.8
	for _, c := range candidates {
		if word != c && sameLetters(word, c) {
			return "did you mean " + before + c + "?"
		}
		if s := likeness(strings.ToLower(word), strings.ToLower(c)); s > score {
			best, score = c, s
		}
	}
	if best == "" {
		return hint
	}
	return "did you mean " + before + best + "?"
}

// sameLetters reports whether two words have the same letters in another order.
func sameLetters(a, b string) bool {
	x, y := []rune(a), []rune(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}
