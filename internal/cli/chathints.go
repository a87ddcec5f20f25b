package cli

import (
	"regexp"
	"strings"
	"sync"
)

// commandLine matches a command as it is typed in a shell, with the flag that names the store.
var commandLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bchatctx (?:--store (?:"[^"]*"|'[^']*'|\S+) )?([a-z]+)\b`)
})

// contextFlag matches the flag of a command line that names its conversation.
var contextFlag = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(` --context ("[^"]*"|'[^']*'|\S+)`)
})

// slashed writes the commands in a text as they are typed in this chat: without the store, and without this conversation and branch.
func (s *chat) slashed(text string) string {
	here := s.conversation().ID
	text = contextFlag().ReplaceAllStringFunc(text, func(flag string) string {
		if ref := contextFlag().FindStringSubmatch(flag)[1]; s.r.leadsTo(strings.Trim(ref, `"'`), here) {
			return ""
		}
		return flag
	})
	text = regexp.MustCompile(` --branch `+regexp.QuoteMeta(quote(s.onBranch()))+`(\s|$)`).ReplaceAllString(text, "$1")
	return commandLine().ReplaceAllStringFunc(text, func(line string) string {
		if name := commandLine().FindStringSubmatch(line)[1]; findCommand(allCommands(), name) != nil {
			return "/" + name
		}
		return line
	})
}

// inSlashes returns an error whose hint is typed in this chat.
func (s *chat) inSlashes(err error) error {
	hint := hintFor(err)
	if s.term == nil || hint == "" {
		return err
	}
	return &hinted{err, s.slashed(hint)}
}
