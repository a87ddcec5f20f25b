package ui

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx/turn"
)

// commandInWords matches a command in a message for a shell, with its arguments.
var commandInWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bchatctx ((?:tag|rules) rm|op log|sub (?:abandon|return)|[a-z]+)((?: (?:"[^"]*"|s[0-9]+|[0-9a-f-]*[0-9][0-9a-f-]*\b|--[a-z]+(?: (?:"[^"]*"|[A-Z]+))?))*)`)
})

// keyFor maps shell commands to the keys of this program. Other commands have no key.
var keyFor = map[string]string{
	"switch": "switch (s)", "pick": "pick (p)", "merge": "merge (M)", "tag rm": "remove it (T there, emptied)", "op log": "the journal (J)", "use": "the list (esc)", "new": "c in the list",
	"ls": "the list (esc)", "undo": "undo (u)", "tree": "the tree",
}

// remedies replace the texts of errors that are meant for a command line.
var remedies = []struct {
	err  error
	text string
}{
	{adapter.ErrNoModel, "no model is set: o sets the conversation's, r asks one that you name, A several"},
	{turn.ErrRounds, "the limit of rounds is reached; i and Enter go on"},
	{turn.ErrTokens, "the limit of tokens is reached; i and Enter go on"},
}

// inKeys returns an error's text for this screen: it replaces shell commands by keys, where there are any.
func (m *model) inKeys(err error) string {
	text := err.Error()
	for _, r := range remedies {
		if errors.Is(err, r.err) {
			return strings.Replace(text, r.err.Error(), r.text, 1)
		}
	}
	own := strings.Contains(text, fmt.Sprintf(", process %d is writing", os.Getpid()))
	text = commandInWords().ReplaceAllStringFunc(text, func(line string) string {
		parts := commandInWords().FindStringSubmatch(line)
		if op, _, _ := strings.Cut(strings.TrimSpace(parts[2]), " "); parts[1] == "undo" && op != "" {
			if op[0] == 's' { // one of the store, which no key takes back
				return line + " (in a shell)"
			}
			return "u on " + op + " in the journal (J)"
		}
		if key, ok := keyFor[parts[1]]; ok {
			return key
		}
		if own && parts[1] == "interrupt" {
			return "x"
		}
		return line + " (in a shell)"
	})
	var provider *wire.Error
	if errors.As(err, &provider) && provider.Kind == wire.Authentication && provider.Status == 0 && provider.KeyName != "" {
		text += "; leave with q, put the key into the environment (export " + provider.KeyName + "=…), and begin again"
	}
	return text
}
