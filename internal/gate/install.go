package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx/record"
)

// Home is where a user's agents keep their settings.
type Home struct {
	Dir string
	Env func(string) string
}

// folder returns the folder of a variable of the environment, else one in the home folder.
func (h Home) folder(variable, name string) string {
	if dir := h.Env(variable); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(h.Dir, name)
}

// settingsFile returns the file in which an agent's hooks stand.
func (a *Agent) settingsFile(h Home) string {
	dir := h.folder(a.home[0], a.home[1])
	if to, err := filepath.EvalSymlinks(filepath.Join(dir, a.home[2])); err == nil {
		return to
	}
	return filepath.Join(dir, a.home[2])
}

// Entry is what the agent's settings say of our hook.
type Entry struct {
	Program string        // the path of chatctx
	Store   string        // its file, as an absolute path
	Wait    time.Duration // for a decision
}

// DefaultWait is how long an agent waits for a decision.
const DefaultWait = time.Hour

// command is the line that the agent has its shell run for an event. A program that is missing, or that crashes, denies.
func (e *Entry) command(a *Agent, event string) string {
	words := shellWord(e.Program) + " gate hook " + a.Name + " --store " + shellWord(e.Store) + " --wait " + e.Wait.String()
	if a.Nameless {
		words += " --event " + event
	}
	return words + " || exit 2"
}

// shellWord quotes a word for a POSIX shell.
func shellWord(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// limit is the agent's own limit for the hook of an event.
func (e *Entry) limit(a *Agent, event string) int64 {
	d := time.Minute
	if a.Events[event] == Before {
		d = e.Wait + overtime + Spare
	}
	return int64(d / a.Unit)
}

// claudeGroup is an entry of an event in the settings of Claude Code, Codex and Gemini CLI.
type claudeGroup struct {
	Matcher string       `json:"matcher,omitempty"`
	Hooks   []claudeHook `json:"hooks"`
}

type claudeHook struct {
	Type    string `json:"type"`
	Name    string `json:"name,omitempty"`
	Command string `json:"command"`
	Timeout int64  `json:"timeout"`
}

func (e *Entry) likeClaude(a *Agent, event string) any {
	g := claudeGroup{Hooks: []claudeHook{{Type: "command", Command: e.command(a, event), Timeout: e.limit(a, event)}}}
	switch a.Events[event] {
	case Before, After, Failed, Refused:
		g.Matcher = a.matcher
	}
	if a.Name == "gemini" {
		g.Hooks[0].Name = hookName
	}
	return g
}

// hookName is what our hooks are called where they have names.
const hookName = "chatctx"

func (e *Entry) likeCopilot(a *Agent, event string) any {
	return struct {
		Type    string `json:"type"`
		Bash    string `json:"bash"`
		Timeout int64  `json:"timeoutSec"`
	}{"command", e.command(a, event), e.limit(a, event)}
}

// Change is a change of an agent's settings that is not made yet.
type Change struct {
	Agent         *Agent
	File          string
	Before, After string
	existed       bool
	remove        bool // the file goes: all that it has is ours
	backup        string
}

// Nothing reports whether nothing would change.
func (c *Change) Nothing() bool { return c.Before == c.After && !c.remove }

// SettingsError means that an agent's settings are not as they have to be. Nothing was changed.
type SettingsError struct {
	File string
	Text string
	Do   string // what to do
}

func (e *SettingsError) Error() string { return e.File + ": " + e.Text }

// Unwrap returns ErrConflict.
func (e *SettingsError) Unwrap() error { return record.ErrConflict }

// settings reads an agent's settings file.
func (a *Agent) settings(h Home) (c *Change, root *node, err error) {
	c = &Change{Agent: a, File: a.settingsFile(h)}
	c.backup = c.File + ".before-chatctx"
	raw, err := os.ReadFile(c.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil, nil
	case err != nil:
		return nil, nil, err
	}
	c.Before, c.existed = string(raw), true
	if a.plugin {
		return c, nil, nil
	}
	root, err = readText(c.Before)
	if err == nil && root != nil && root.kind != '{' {
		err = errors.New("it is no object")
	}
	if err == nil && !a.comments && root != nil && !json.Valid(raw) {
		err = errors.New("comments, and commas that nothing follows, are not JSON")
	}
	if err != nil {
		return nil, nil, &SettingsError{c.File, fmt.Sprintf("%s cannot read it, and runs without hooks: %v", a.Title, err), "correct the file"}
	}
	return c, root, nil
}

// Install returns the change that has an agent call us.
func (a *Agent) Install(h Home, e *Entry) (*Change, error) {
	c, root, err := a.settings(h)
	if err != nil {
		return nil, err
	}
	if a.plugin {
		if c.existed && !strings.HasPrefix(c.Before, pluginMark) {
			return nil, &SettingsError{c.File, "the file is not ours", "move it away"}
		}
		c.After = e.plugin()
		return c, nil
	}
	if off := a.off(c.Before, root); off != "" {
		return nil, &SettingsError{c.File, off + " switches the agent's hooks off", "remove that first"}
	}
	if c.After = c.Before; a.has(c.Before, e) {
		return c, nil
	}
	bare, _, err := a.bare(c)
	if err == nil {
		c.After, err = a.added(bare, e)
	}
	if err != nil {
		return nil, &SettingsError{c.File, err.Error(), "correct the file"}
	}
	return c, a.sameBut(c)
}

// bare returns settings without our hooks: the text from before the first of them, if nothing else changed since. made: there was no file then.
func (a *Agent) bare(c *Change) (text string, made bool, err error) {
	if text, err = a.removed(c.Before); err != nil || text == c.Before {
		return text, false, err
	}
	was, missing := os.ReadFile(c.backup)
	if again, err := a.added(string(was), a.entryIn(c.Before)); err == nil && again == c.Before {
		return string(was), missing != nil, nil
	}
	return text, false, nil
}

// added returns settings with our hooks.
func (a *Agent) added(text string, e *Entry) (string, error) {
	root, err := readText(text)
	if err == nil && root == nil {
		text += "{}\n"
	}
	for _, event := range slices.Sorted(maps.Keys(a.Events)) {
		if err != nil {
			return "", err
		}
		text, err = a.addTo(text, event, e)
	}
	return text, err
}

// addTo adds the hook of an event, and the lists around it that are missing.
func (a *Agent) addTo(text, event string, e *Entry) (string, error) {
	root, err := readText(text)
	if err != nil {
		return "", err
	}
	entry := a.entry(e, a, event)
	if a.Name == "copilot" && root.get("version") == nil && root.get("hooks") == nil {
		if text, err = root.with(text, "version", 1); err != nil {
			return "", err
		}
		if root, err = readText(text); err != nil {
			return "", err
		}
	}
	hooks := root.get("hooks")
	if hooks == nil {
		return root.with(text, "hooks", map[string]any{event: []any{entry}})
	}
	if hooks.kind != '{' {
		return "", errors.New("hooks is no object")
	}
	list := hooks.get(event)
	if list == nil {
		return hooks.with(text, event, []any{entry})
	}
	if list.kind != '[' {
		return "", fmt.Errorf("hooks.%s is no list", event)
	}
	return list.with(text, "", entry)
}

// ours returns the command of a hook of ours, "" for all else.
func (a *Agent) ours(text string, n *node) string {
	for _, key := range []string{"command", "bash"} {
		var line string
		if v := n.get(key); v != nil && json.Unmarshal([]byte(text[v.from:v.to]), &line) == nil && strings.Contains(line, " gate hook "+a.Name+" ") {
			return line
		}
	}
	return ""
}

// removed returns settings without our hooks, and without the lists that only held them.
func (a *Agent) removed(text string) (string, error) {
	for {
		root, err := readText(text)
		if err != nil || root == nil {
			return text, err
		}
		next, found := a.removeOne(text, root)
		if !found {
			return text, nil
		}
		text = next
	}
}

// removeOne removes one hook of ours with what is empty then.
func (a *Agent) removeOne(text string, root *node) (string, bool) {
	hooks := root.get("hooks")
	if hooks == nil || hooks.kind != '{' {
		return text, false
	}
	at := slices.IndexFunc(root.items, func(one item) bool { return one.value == hooks })
	for i, event := range hooks.items {
		for j, one := range event.value.items {
			path := []place{{root, at}, {hooks, i}, {event.value, j}}
			if event.value.kind == '[' && a.ours(text, one.value) != "" {
				return removeAt(text, path), true
			}
			inner := one.value.get("hooks")
			if inner == nil {
				continue
			}
			for k, hook := range inner.items {
				if a.ours(text, hook.value) != "" {
					if len(inner.items) > 1 {
						return inner.without(text, []int{k}), true
					}
					return removeAt(text, path), true
				}
			}
		}
	}
	return text, false
}

// place is one item of a node.
type place struct {
	of *node
	at int
}

// removeAt removes the outermost item of a path that is empty without the last one.
func removeAt(text string, path []place) string {
	last := len(path) - 1
	for last > 0 && len(path[last].of.items) == 1 {
		last--
	}
	return path[last].of.without(text, []int{path[last].at})
}

// sameBut checks that a change adds or takes away our hooks alone.
func (a *Agent) sameBut(c *Change) error {
	one, err := a.rest(c.Before)
	two, err2 := a.rest(c.After)
	if err = errors.Join(err, err2); err != nil || !reflect.DeepEqual(one, two) {
		return &SettingsError{c.File, "the change would have touched something else, so it is not made", "add the hooks by hand: docs/gate.md"}
	}
	return nil
}

// rest returns what settings say besides our hooks.
func (a *Agent) rest(text string) (map[string]any, error) {
	text, err := a.removed(text)
	if err != nil {
		return nil, err
	}
	root, err := readText(text)
	v := map[string]any{}
	if err == nil && root != nil {
		err = json.Unmarshal([]byte(root.plain(text)), &v)
	}
	if hooks, is := v["hooks"].(map[string]any); is {
		maps.DeleteFunc(hooks, func(_ string, list any) bool { l, is := list.([]any); return is && len(l) == 0 })
		if len(hooks) == 0 {
			delete(v, "hooks")
		}
	}
	if a.Name == "copilot" {
		delete(v, "version")
	}
	return v, err
}

// off returns what in settings switches hooks off, "" for nothing.
func (a *Agent) off(text string, root *node) string {
	is := func(n *node, word string) bool { return n != nil && text[n.from:n.to] == word }
	conf := root.get("hooksConfig")
	switch {
	case is(root.get("disableAllHooks"), "true"):
		return `"disableAllHooks": true`
	case is(conf.get("enabled"), "false"):
		return `"hooksConfig": {"enabled": false}`
	case conf.get("disabled") != nil && strings.Contains(conf.get("disabled").plain(text), `"`+hookName+`"`):
		return `"hooksConfig": {"disabled": ["` + hookName + `"]}`
	}
	return ""
}

// Uninstall returns the change that has an agent call us no more: the file as it was before, if nothing else changed since.
func (a *Agent) Uninstall(h Home) (*Change, error) {
	c, _, err := a.settings(h)
	if err != nil || !c.existed {
		return c, err
	}
	if a.plugin {
		c.remove = strings.HasPrefix(c.Before, pluginMark)
		c.After = map[bool]string{false: c.Before}[c.remove]
		return c, nil
	}
	if c.After, c.remove, err = a.bare(c); err != nil {
		return nil, err
	}
	return c, a.sameBut(c)
}

// Installed is what an agent's settings say of our hook.
type Installed struct {
	File   string
	Entry  *Entry // nil: none, or not all that there has to be
	Partly bool   // some of the hooks are there
	Off    string // what switches them off
	Broken string // why the settings cannot be read
}

// Installed looks for our hook in an agent's settings.
func (a *Agent) Installed(h Home) *Installed {
	c, root, err := a.settings(h)
	if err != nil {
		return &Installed{File: a.settingsFile(h), Broken: err.Error()}
	}
	in := &Installed{File: c.File}
	if !c.existed {
		return in
	}
	e := a.entryIn(c.Before)
	if a.plugin {
		if e != nil && c.Before == e.plugin() {
			in.Entry = e
		}
		in.Partly = in.Entry == nil && strings.HasPrefix(c.Before, pluginMark)
		return in
	}
	in.Off = a.off(c.Before, root)
	if e != nil && a.has(c.Before, e) {
		in.Entry = e
	}
	in.Partly = e != nil && in.Entry == nil
	return in
}

// has reports whether all hooks are in settings as they have to be, and none of ours besides.
func (a *Agent) has(text string, e *Entry) bool {
	root, err := readText(text)
	if err != nil || root == nil {
		return false
	}
	n, hooks := 0, root.get("hooks")
	for _, event := range slices.Sorted(maps.Keys(a.Events)) {
		want, err := json.Marshal(a.entry(e, a, event))
		list := hooks.get(event)
		if err != nil || list == nil || !slices.ContainsFunc(list.items, func(one item) bool { return sameJSON(one.value.plain(text), string(want)) }) {
			return false
		}
		n++
	}
	return strings.Count(root.plain(text), " gate hook "+a.Name+" ") == n
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// entryIn reads the entry of the first hook of ours, nil if there is none.
func (a *Agent) entryIn(text string) *Entry {
	words := shellWords(strings.TrimSuffix(a.lineIn(text), " || exit 2"))
	e := &Entry{Program: words[0]}
	for i := 1; i < len(words)-1; i++ {
		switch words[i] {
		case "--store":
			e.Store = words[i+1]
		case "--wait":
			e.Wait, _ = time.ParseDuration(words[i+1])
		}
	}
	if e.Program == "" {
		return nil
	}
	return e
}

// lineIn returns the command of the first hook of ours, "" if there is none.
func (a *Agent) lineIn(text string) (line string) {
	if a.plugin {
		_, rest, _ := strings.Cut(text, "\nconst before = ")
		raw, _, _ := strings.Cut(rest, ";\n")
		_ = json.Unmarshal([]byte(raw), &line)
		return line
	}
	root, err := readText(text)
	if err != nil {
		return ""
	}
	var look func(n *node)
	look = func(n *node) {
		if n == nil || line != "" {
			return
		}
		if line = a.ours(text, n); line == "" {
			for _, one := range n.items {
				look(one.value)
			}
		}
	}
	look(root.get("hooks"))
	return line
}

// shellWords splits a line of ours.
func shellWords(line string) []string {
	words, quoted := []string{""}, false
	for i := 0; i < len(line); i++ {
		last := &words[len(words)-1]
		switch c := line[i]; {
		case c == '\'':
			quoted = !quoted
		case c == '\\' && !quoted && i+1 < len(line):
			i++
			*last += line[i : i+1]
		case c == ' ' && !quoted:
			words = append(words, "")
		default:
			*last += line[i : i+1]
		}
	}
	return words
}

// Write makes the change: as a whole or not at all, with a copy of what was there before the first of our hooks. It then reads the file again.
func (c *Change) Write() (backup string, err error) {
	now, err := os.ReadFile(c.File)
	if missing := errors.Is(err, fs.ErrNotExist); err != nil && !missing || missing == c.existed || string(now) != c.Before {
		return "", &SettingsError{c.File, "somebody changed the file meanwhile", "try again"}
	}
	if c.remove {
		return "", os.Remove(c.File)
	}
	if err := os.MkdirAll(filepath.Dir(c.File), 0o700); err != nil {
		return "", err
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(c.File); err == nil {
		mode = info.Mode().Perm()
	}
	if bare := !strings.Contains(c.Before, " gate hook "+c.Agent.Name+" "); bare && c.existed {
		if backup = c.backup; writeWhole(backup, c.Before, mode) != nil {
			return "", fmt.Errorf("the copy %s cannot be written", backup)
		}
	}
	if err := writeWhole(c.File, c.After, mode); err != nil {
		return "", err
	}
	if was, err := os.ReadFile(c.backup); err == nil && string(was) == c.After {
		_ = os.Remove(c.backup)
	}
	if now, err = os.ReadFile(c.File); err == nil && string(now) != c.After {
		err = &SettingsError{c.File, "the file is not as it was written", "try again"}
	}
	return backup, err
}

// writeWhole writes a file completely or not at all.
func writeWhole(path, text string, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
