package approval

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/jsontree"
)

// Names of arguments: pathNames for paths, folderNames for folders, commandNames for shell texts.
var (
	pathNames    = []string{"path", "file_path", "filepath", "file", "filename"}
	folderNames  = []string{"directory", "dir", "folder", "cwd", "workdir"}
	commandNames = []string{"command", "cmd", "script"}
)

// Offers returns rules that would allow calls like this one from now on, the narrowest first: exactly this call; this tool with values of this kind, if it
// takes a path (its folder) or a command (its words); this tool. The question is that of the call's Ruling, perhaps with other arguments. Each rule but the
// last allows this very call, and none leaves a path or a command open.
func Offers(q record.Question) []*record.Rule {
	tool := quoteGlob(q.Tool)
	var out []*record.Rule
	args, err := jsontree.Arguments(q.Arguments)
	if err == nil {
		out = offer(out, &q, &record.Rule{Effect: record.Allow, Tool: tool, When: []record.Condition{{Argument: All, Op: Equals, Value: string(args.Append(nil))}}})
		if when := like(args, &q); when != nil {
			out = offer(out, &q, &record.Rule{Effect: record.Allow, Tool: tool, When: when})
		}
	}
	return append(out, &record.Rule{Effect: record.Allow, Tool: tool})
}

// offer adds a rule if it allows the call.
func offer(out []*record.Rule, q *record.Question, r *record.Rule) []*record.Rule {
	if (Rules{}).ready(r) == nil && Allows(r, *q) {
		out = append(out, r)
	}
	return out
}

// Allows reports whether a rule for the context of a question would allow its call.
func Allows(r *record.Rule, q record.Question) bool {
	own := *r
	own.Context = q.Context
	return Rules{}.ready(&own) == nil && Rules{}.Judge([]*record.Rule{&own}, &q).Effect == record.Allow
}

// like returns conditions for arguments of the same kind: paths in the same folders, commands that begin with the same words and open the same files. It
// returns nil if there are no such arguments, or if one of them would be left open because it cannot be told or lies deeper, where no condition looks.
func like(args *jsontree.Value, q *record.Question) []record.Condition {
	var when []record.Condition
	for _, m := range args.Members {
		folded := strings.ToLower(m.Name)
		folder := slices.Contains(folderNames, folded)
		var more []record.Condition
		switch {
		case slices.Contains(commandNames, folded):
			if m.Value.Kind == jsontree.String {
				more = likeScript(m.Name, readScript(m.Value.Text, settingOf(q.Command, m.Name, q.Env)))
			}
		case folder, slices.Contains(pathNames, folded):
			if at := folderFor(m.Value.Text, q.Dir, folder); m.Value.Kind == jsontree.String && at != "" {
				more = []record.Condition{{Argument: m.Name, Op: Under, Value: at}}
			}
		case takesMore(m.Value):
			return nil
		default:
			continue
		}
		if more == nil {
			return nil
		}
		when = append(when, more...)
	}
	return when
}

// likeScript returns conditions for the commands of a script, the files that it opens and the variables that it sets; nil if they cannot be told.
func likeScript(argument string, s *script) []record.Condition {
	value := beginnings(s)
	if value == "" {
		return nil
	}
	when := []record.Condition{{Argument: argument, Op: Each, Value: value}}
	var files, names []string
	for _, f := range s.files {
		files = append(files, quotedField(quoteGlob(f.name.text)))
	}
	for _, name := range s.names {
		names = append(names, quotedField(name))
	}
	if len(files) > 0 {
		when = append(when, record.Condition{Argument: argument, Op: Writes, Value: strings.Join(files, " ")})
	}
	if len(names) > 0 {
		when = append(when, record.Condition{Argument: argument, Op: Sets, Value: strings.Join(names, " ")})
	}
	return when
}

// quotedField quotes a pattern among several.
func quotedField(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// takesMore reports whether a path or a command stands deeper in a value.
func takesMore(v *jsontree.Value) bool {
	for _, m := range v.Members {
		name := strings.ToLower(m.Name)
		if slices.Contains(commandNames, name) || slices.Contains(pathNames, name) || slices.Contains(folderNames, name) || takesMore(m.Value) {
			return true
		}
	}
	return slices.ContainsFunc(v.List, takesMore)
}

// folderFor returns the folder of a path, or the path if it is a folder. A relative path begins in dir. It returns "" if the folder cannot be told, is the
// root, or the path has .. in it.
func folderFor(name, dir string, folder bool) string {
	if untold(name) != "" || slices.Contains(names(filepath.FromSlash(name)), "..") {
		return ""
	}
	at := filepath.FromSlash(name)
	if !filepath.IsAbs(at) {
		if dir == "" {
			return ""
		}
		at = filepath.Join(dir, at)
	}
	if st, err := os.Stat(at); !folder && (err != nil || !st.IsDir()) {
		at = filepath.Dir(at)
	}
	if at = filepath.Clean(at); at == filepath.Dir(at) {
		return ""
	}
	return at
}

// beginnings returns patterns of the commands of a script: each program with its first word, unless that is a flag. It returns "" if it cannot be told what
// runs.
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
		words := []string{quoteGlob(cmd.words[0].text)}
		if len(cmd.words) > 1 && cmd.words[1].literal && plainWord(cmd.words[1].text) {
			words = append(words, cmd.words[1].text)
		}
		pattern := quotedField(strings.Join(words, " "))
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
