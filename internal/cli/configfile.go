package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/settings"
)

// config is the person's config file: settings, aliases of commands and aliases of models. A library never reads it, nor does the command in a folder or a repository.
type config struct {
	settings.File
	aliases, models map[string]configLine
}

// configLine is what stands in a line of the config file.
type configLine struct {
	value string
	line  int
}

// configPath returns the path of the person's config file: that of CHATCTX_CONFIG, else chatctx/config in the folder for a user's configuration. "" means none.
func configPath() string {
	if path, set := os.LookupEnv("CHATCTX_CONFIG"); set {
		return path
	}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		var err error
		if dir, err = systemConfigDir(); err != nil {
			return ""
		}
	}
	return filepath.Join(dir, "chatctx", "config")
}

// systemConfigDir is the folder for a user's configuration where XDG_CONFIG_HOME names none.
func systemConfigDir() (string, error) {
	if dir := os.Getenv("AppData"); runtime.GOOS == "windows" && dir != "" {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support"), err
	}
	return filepath.Join(home, ".config"), err
}

// templateDir returns the folder for files of templates, "" for none.
func templateDir() string {
	path := configPath()
	if path == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(path), "templates")
}

// noConfig is the flag with which a command line goes without the config file.
const noConfig = "--no-config"

// readConfigFile reads the config file, unless the command line says not to.
func readConfigFile(args []string) (*config, error) {
	path := configPath()
	if before, _, _ := strings.Cut(strings.Join(args, "\x00")+"\x00", "\x00--\x00"); path == "" || slices.ContainsFunc(strings.Split(before, "\x00"), func(w string) bool { return w == noConfig || w == noConfig+"=true" }) {
		return parseConfig("", "")
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return parseConfig(path, "")
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &usageError{path + " is no file", "it may be left out: CHATCTX_CONFIG=, or " + noConfig}
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0:
		return nil, &usageError{"others may write " + path + ", so it is not read", "chmod go-w " + quote(path)}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseConfig(path, string(text))
}

// parseConfig parses a config file: KEY = VALUE lines, those of aliases below [alias] and [model]; # begins a line that is a comment.
func parseConfig(path, text string) (*config, error) {
	c := &config{settings.File{Path: path, Values: map[string]json.RawMessage{}, Lines: map[string]int{}}, map[string]configLine{}, map[string]configLine{}}
	section, n := "", 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if name, ok := strings.CutPrefix(line, "["); ok {
			if section, ok = strings.CutSuffix(name, "]"); !ok || section != "alias" && section != "model" {
				return nil, wrongLine(path, n, "a section is [alias] or [model]")
			}
			continue
		}
		if err := c.take(section, line, n); err != nil {
			return nil, wrongLine(path, n, err.Error())
		}
	}
	if err := c.Check(); err != nil {
		return nil, &usageError{err.Error(), "chatctx help config explains the places of settings"}
	}
	return c, nil
}

func wrongLine(path string, line int, text string) error {
	return &usageError{fmt.Sprintf("%s:%d: %s", path, line, text), "without the file: " + noConfig}
}

// take takes one line of a section.
func (c *config) take(section, line string, n int) error {
	key, value, ok := strings.Cut(line, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if !ok || key == "" || value == "" {
		return errors.New("a line is KEY = VALUE")
	}
	into := map[string]map[string]configLine{"alias": c.aliases, "model": c.models}[section]
	if into == nil {
		if _, twice := c.Values[key]; twice {
			return fmt.Errorf("%s stands there twice", key)
		}
		c.Values[key], c.Lines[key] = settings.Parse(key, value), n
		if settings.IsOfStore(key) {
			return fmt.Errorf("only the store can have the setting %s", key)
		}
		return settings.Check(key, c.Values[key])
	}
	if strings.HasPrefix(value, `"`) && json.Unmarshal([]byte(value), &value) != nil {
		return fmt.Errorf("%s is no text in quotes", value)
	}
	if _, twice := into[key]; twice {
		return fmt.Errorf("%s stands there twice", key)
	}
	into[key] = configLine{value, n}
	return c.checkAlias(section, key, value)
}

// checkAlias refuses an alias that shadows a model or stands for no command.
func (c *config) checkAlias(section, name, value string) error {
	switch {
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == ',' || r == '=' }) || name[0] == '-':
		return fmt.Errorf("%q cannot be the name of an alias", name)
	case section == "alias":
		if words, _ := cutWords(value); len(words) == 0 || looksLikeFlag(words[0]) {
			return fmt.Errorf("the alias %s begins with no command", name)
		}
	case adapter.ProviderOf(name) != "":
		return fmt.Errorf("%s is a model of %s, and no alias can stand for it", name, adapter.ProviderOf(name))
	}
	return nil
}

// expanded returns a command line with the alias of a command replaced. An alias with a command's name is passed over, and passed is its name.
func (c *config) expanded(table []*command, args []string) (line []string, err error) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if looksLikeFlag(a) {
			if f := sharedFlagOf(a); f != nil && takesValue(f) && !strings.Contains(a, "=") {
				i++
			}
			continue
		}
		alias, ok := c.aliases[a]
		if !ok || findCommand(table, a) != nil {
			return args, nil
		}
		words, _ := cutWords(alias.value)
		if findCommand(table, words[0]) == nil {
			return nil, wrongLine(c.Path, alias.line, fmt.Sprintf("the alias %s begins with %q, which is no command", a, words[0]))
		}
		return slices.Concat(args[:i], words, args[i+1:]), nil
	}
	return args, nil
}

// alias returns what an alias of a command stands for.
func (c *config) alias(name string) (string, bool) {
	if c == nil {
		return "", false
	}
	a, ok := c.aliases[name]
	return a.value, ok
}

// sharedFlagOf returns the shared flag that a word is, nil for another one.
func sharedFlagOf(word string) *flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, f := range sharedFlags(onBranch) {
		if f.name == name {
			return f
		}
	}
	return nil
}

// passedOver returns what is said of aliases that have the name of a command by now.
func (c *config) passedOver() (notes []string) {
	if c == nil || len(c.aliases) == 0 {
		return nil
	}
	table := allCommands()
	for _, name := range slices.Sorted(maps.Keys(c.aliases)) {
		if findCommand(table, name) != nil {
			notes = append(notes, fmt.Sprintf("the alias %s (%s:%d) is passed over: chatctx %s is a command", name, c.Path, c.aliases[name].line, name))
		}
	}
	return notes
}

// model returns the model that a name stands for.
func (c *config) model(name string) string {
	if m, ok := c.models[name]; ok {
		return m.value
	}
	return name
}

// putModels puts full names in place of aliases of models, wherever a command line names one.
func (c *config) putModels(p *parsed) {
	if len(c.models) == 0 || p.command() == nil {
		return
	}
	for i, kept := range p.own {
		name, value, _ := strings.Cut(kept, "=")
		at := slices.IndexFunc(p.command().flags, func(f *flag) bool { return f.dashed() == name })
		if at < 0 {
			continue
		}
		switch valueWord(p.command().flags[at]) {
		case "MODEL":
			p.own[i] = name + "=" + c.model(value)
		case "MODELS":
			all := strings.Split(value, ",")
			for j := range all {
				all[j] = c.model(strings.TrimSpace(all[j]))
			}
			p.own[i] = name + "=" + strings.Join(all, ",")
		case "MODEL:KEY=VALUE":
			if model, rest, ok := strings.Cut(value, ":"); ok {
				p.own[i] = name + "=" + c.model(model) + ":" + rest
			}
		}
	}
	for i, a := range p.args {
		if key, value, ok := strings.Cut(a, "="); ok && p.name() == "config" && (key == "model" || key == "compact.model") {
			p.args[i] = key + "=" + c.model(value)
		}
	}
}

// editConfig returns the text of a config file with lines changed; null removes one. Keys below alias. and model. are those of the sections.
func editConfig(text string, set map[string]json.RawMessage) string {
	lines := strings.SplitAfter(text, "\n")
	for _, key := range slices.Sorted(maps.Keys(set)) {
		section, name := "", key
		for _, s := range []string{"alias", "model"} {
			if rest, ok := strings.CutPrefix(key, s+"."); ok {
				section, name = s, rest
			}
		}
		lines = editLine(lines, section, name, set[key])
	}
	return strings.Join(lines, "")
}

// editLine changes, adds or removes one line. A new one goes behind the last line of its section.
func editLine(lines []string, section, name string, value json.RawMessage) []string {
	line, in, at, end := name+" = "+string(value)+"\n", "", -1, -1
	if section == "" {
		end = 0
	}
	for i, l := range lines {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "[") {
			in = strings.Trim(l, "[]")
		}
		key, _, isLine := strings.Cut(l, "=")
		if in != section || l == "" {
			continue
		}
		if end = i + 1; isLine && l[0] != '#' && strings.TrimSpace(key) == name {
			at = i
		}
	}
	removed := string(value) == "null"
	switch {
	case at >= 0 && removed:
		return slices.Delete(lines, at, at+1)
	case removed:
		return lines
	case at >= 0:
		lines[at] = line
		return lines
	}
	if end > 0 && !strings.HasSuffix(lines[end-1], "\n") {
		lines[end-1] += "\n"
	}
	if end < 0 {
		if n := len(lines); n > 0 && lines[n-1] != "" {
			lines[n-1] = strings.TrimRight(lines[n-1], "\n") + "\n"
		}
		return append(lines, "["+section+"]\n", line)
	}
	return slices.Insert(lines, end, line)
}

// writeConfigFile changes the config file as a whole, unless it would be wrong then.
func writeConfigFile(set map[string]json.RawMessage) (string, error) {
	path := configPath()
	if path == "" {
		return "", &usageError{"there is no config file: CHATCTX_CONFIG is empty", "unset it, or name a file there"}
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	changed := editConfig(string(text), set)
	c, err := parseConfig(path, changed)
	if err != nil {
		return "", err
	}
	table := allCommands()
	for key := range set {
		if name, ok := strings.CutPrefix(key, "alias."); ok && findCommand(table, name) != nil && string(set[key]) != "null" {
			return "", &usageError{fmt.Sprintf("%s:%d: chatctx %s is a command, and no alias can stand for it", path, c.aliases[name].line, name), "give it another name"}
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, operation.WriteWhole(path, changed)
}
