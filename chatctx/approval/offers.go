package approval

import (
	"path"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/jsontree"
)

// pathNames are the names under which tools take a path, and commandNames those under which they take a shell's text.
var (
	pathNames    = []string{"path", "file_path", "filepath", "file", "filename", "directory", "dir", "folder"}
	commandNames = []string{"command", "cmd", "script"}
)

// Offers are the rules that would allow calls like one from now on, the narrowest first: this exact call; this tool with these values, where it takes a path (its folder) or a command (its words); this tool.
func Offers(c *chatctx.Call) []*chatctx.Rule {
	tool := QuoteGlob(c.Tool)
	var out []*chatctx.Rule
	args, err := jsontree.Arguments(c.RunArguments())
	if err == nil {
		exact := string(args.Append(nil))
		out = append(out, &chatctx.Rule{Effect: chatctx.Allow, Tool: tool, When: []chatctx.Condition{{Argument: All, Op: Equals, Value: exact}}})
		if when := like(args); when != nil {
			out = append(out, &chatctx.Rule{Effect: chatctx.Allow, Tool: tool, When: when})
		}
	}
	return append(out, &chatctx.Rule{Effect: chatctx.Allow, Tool: tool})
}

// like are the conditions that arguments of the same kind fulfil: in the folders of their paths, with the words that their commands begin with. Nil where there are no such arguments.
func like(args *jsontree.Value) []chatctx.Condition {
	var when []chatctx.Condition
	for _, name := range pathNames {
		v := args.Get(name)
		if v == nil || v.Kind != jsontree.String || untold(v.Text) != "" || !strings.HasPrefix(v.Text, "/") {
			continue
		}
		when = append(when, chatctx.Condition{Argument: name, Op: Under, Value: path.Dir(v.Text)})
	}
	for _, name := range commandNames {
		v := args.Get(name)
		if v == nil || v.Kind != jsontree.String {
			continue
		}
		if patterns := beginnings(readScript(v.Text)); patterns != "" {
			when = append(when, chatctx.Condition{Argument: name, Op: Each, Value: patterns})
		}
	}
	return when
}

// beginnings are patterns of the commands of a script: a program with its first word, where that is no flag. "" where it cannot be told what runs.
func beginnings(s *script) string {
	if s.untold != "" {
		return ""
	}
	var patterns []string
	seen := map[string]bool{}
	for _, cmd := range s.commands {
		if cmd.through {
			continue
		}
		words := []string{QuoteGlob(cmd.words[0].text)}
		if len(cmd.words) > 1 && cmd.words[1].literal && plainWord(cmd.words[1].text) {
			words = append(words, cmd.words[1].text)
		}
		pattern := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(strings.Join(words, " ")) + `"`
		if strings.ContainsAny(words[0], " \t\n") || seen[pattern] {
			continue
		}
		seen[pattern] = true
		patterns = append(patterns, pattern)
	}
	return strings.Join(patterns, " ")
}

// plainWord reports whether a word is a name like push or test.
func plainWord(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && r != '-' }) < 0 && s[0] != '-'
}
