package gate

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func homeIn(dir string) Home { return Home{dir, func(string) string { return "" }} }

func testEntry() *Entry { return &Entry{"/opt/o'ne/chatctx", "/home/ä b/chats.db", time.Hour} }

// change makes a change of an agent's settings.
func change(t *testing.T, c *Change, err error) *Change {
	t.Helper()
	if err == nil && !c.Nothing() {
		_, err = c.Write()
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// settingsBefore are settings that people have, by what is special about them.
var settingsBefore = map[string]string{
	"none":         "",
	"only braces":  "{}",
	"empty hooks":  `{"hooks": {}}`,
	"one line":     `{"model":"x","hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"true"}]}]},"z":{"keep":[1,2]}}`,
	"tabs":         "{\n\t\"a\": {\n\t\t\"b\": 1\n\t},\n\t\"hooks\": {\n\t\t\"SessionStart\": [\n\t\t\t{\n\t\t\t\t\"hooks\": []\n\t\t\t}\n\t\t]\n\t}\n}\n",
	"strange text": "{ \"a\": \"\\u00e4 || exit 2 { , \\\" // no comment\" ,\n \"hooks\" :{ \"Stop\":[ ] } }\n\n",
}

// TestInstallAndUninstall: an agent's settings keep all that is not ours, a second install changes nothing, and uninstall gives the file back byte for byte.
func TestInstallAndUninstall(t *testing.T) {
	for _, a := range Agents {
		for name, before := range settingsBefore {
			if a.plugin && before != "" {
				continue
			}
			home := homeIn(t.TempDir())
			file := a.settingsFile(home)
			if before != "" {
				write(t, file, before)
			}
			if in := a.Installed(home); in.Entry != nil || in.Partly || in.Broken != "" {
				t.Fatalf("%s, %s: before: %+v", a.Name, name, in)
			}
			c, err := a.Install(home, testEntry())
			change(t, c, err)
			if in := a.Installed(home); in.Entry == nil || *in.Entry != *testEntry() {
				t.Fatalf("%s, %s: installed: %+v\n%s", a.Name, name, in, c.After)
			}
			if !a.plugin && !json.Valid([]byte(c.After)) {
				t.Errorf("%s, %s: no JSON:\n%s", a.Name, name, c.After)
			}
			again, err := a.Install(home, testEntry())
			if err != nil || !again.Nothing() {
				t.Errorf("%s, %s: a second install changes the file: %v\n%s", a.Name, name, err, again.After)
			}
			other := testEntry()
			other.Wait = 5 * time.Minute
			c, err = a.Install(home, other)
			if change(t, c, err); c.Nothing() || strings.Count(c.After, "--wait 1h") > 0 {
				t.Errorf("%s, %s: another wait gives\n%s", a.Name, name, c.After)
			}
			c, err = a.Uninstall(home)
			change(t, c, err)
			raw, err := os.ReadFile(file)
			if before == "" && !errors.Is(err, os.ErrNotExist) || before != "" && string(raw) != before {
				t.Errorf("%s, %s: uninstall leaves %q, was %q, %v", a.Name, name, raw, before, err)
			}
			if left, err := os.ReadDir(filepath.Dir(file)); err != nil || before == "" && len(left) > 0 || before != "" && len(left) > 1 {
				t.Errorf("%s, %s: uninstall leaves files: %v", a.Name, name, left)
			}
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestUninstallKeepsWhatCameLater: what a person changes between install and uninstall stays.
func TestUninstallKeepsWhatCameLater(t *testing.T) {
	for _, a := range Agents {
		if a.plugin {
			continue
		}
		for name, before := range settingsBefore {
			home := homeIn(t.TempDir())
			file := a.settingsFile(home)
			write(t, file, before)
			c, err := a.Install(home, testEntry())
			change(t, c, err)
			later := strings.Replace(c.After, "{", `{"later": [true, "x"], `, 1)
			write(t, file, later)
			want, err := a.rest(later)
			if err != nil || want["later"] == nil {
				t.Fatal(err, want)
			}
			c, err = a.Uninstall(home)
			change(t, c, err)
			got, err := a.rest(c.After)
			if one, _ := json.Marshal(want); err != nil || strings.Contains(c.After, "gate hook") {
				t.Errorf("%s, %s: %v\n%s", a.Name, name, err, c.After)
			} else if two, _ := json.Marshal(got); string(one) != string(two) {
				t.Errorf("%s, %s: %s became %s", a.Name, name, one, two)
			}
		}
	}
}

// TestCommentsStay: an agent whose settings may have comments keeps them.
func TestCommentsStay(t *testing.T) {
	a, home := Named("gemini"), homeIn(t.TempDir())
	const before = "// mine {\n{\n  /* one, */ \"a\": 1, // two\n  \"hooks\": {\n    // three\n    \"BeforeTool\": [\n      {\"hooks\": []}, // four\n    ],\n  }, // five\n}\n// six\n"
	file := a.settingsFile(home)
	write(t, file, before)
	c, err := a.Install(home, testEntry())
	change(t, c, err)
	later := strings.Replace(c.After, `"a": 1`, `"a": 2`, 1)
	write(t, file, later)
	u, err := a.Uninstall(home)
	change(t, u, err)
	for _, text := range []string{c.After, u.After} {
		for _, word := range []string{"mine {", "one,", "two", "three", "four", "five", "six"} {
			if !strings.Contains(text, word) {
				t.Errorf("the comment %q is gone:\n%s", word, text)
			}
		}
	}
	if root, err := readText(u.After); err != nil || root.get("a") == nil || strings.Contains(u.After, "gate hook") {
		t.Errorf("after uninstall: %v\n%s", err, u.After)
	}
}

// TestSettingsThatAreRefused: nothing is written into a file that the agent cannot read, that is not ours, or that switches hooks off.
func TestSettingsThatAreRefused(t *testing.T) {
	for _, c := range []struct{ agent, before string }{
		{"claude-code", `{"hooks": `}, {"claude-code", `[1]`}, {"claude-code", "{} {}"}, {"claude-code", "{\"a\": 1 \"b\": 2}"}, {"claude-code", "{\"a\": 01}"},
		{"claude-code", "{} // comment"}, {"claude-code", `{"a": 1,}`}, {"codex", "{/**/}"}, {"gemini", "{/*"}, {"gemini", "{\"a\" 1}"}, {"gemini", strings.Repeat("[", 5000)},
		{"claude-code", `{"disableAllHooks": true}`}, {"gemini", `{"hooksConfig": {"enabled": false}}`}, {"gemini", `{"hooksConfig": {"disabled": ["chatctx"]}}`},
		{"claude-code", `{"hooks": []}`}, {"claude-code", `{"hooks": {"Stop": {}}}`}, {"opencode", "export const Mine = 1\n"},
	} {
		a, home := Named(c.agent), homeIn(t.TempDir())
		file := a.settingsFile(home)
		write(t, file, c.before)
		if change, err := a.Install(home, testEntry()); err == nil {
			t.Errorf("%s takes %q: %s", c.agent, c.before, change.After)
		}
		if raw, err := os.ReadFile(file); err != nil || string(raw) != c.before {
			t.Errorf("%s: %q became %q, %v", c.agent, c.before, raw, err)
		}
	}
}

// TestLimits: the agent's own limit is longer than the wait, in its own unit, and a file that changed meanwhile is not overwritten.
func TestLimits(t *testing.T) {
	e := testEntry()
	for name, want := range map[string]int64{"claude-code": 3640, "codex": 3640, "gemini": 3640000, "copilot": 3640} {
		a := Named(name)
		for event, moment := range a.Events {
			if got := e.limit(a, event); moment == Before && got != want || moment != Before && got != int64(time.Minute/a.Unit) {
				t.Errorf("%s %s: limit %d", name, event, got)
			}
		}
	}
	a, home := Named("claude-code"), homeIn(t.TempDir())
	c, err := a.Install(home, e)
	if err != nil {
		t.Fatal(err)
	}
	write(t, c.File, "{}")
	var settings *SettingsError
	if _, err := c.Write(); !errors.As(err, &settings) {
		t.Errorf("a file that appeared meanwhile: %v", err)
	}
}
