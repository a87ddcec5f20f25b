package approval

import "testing"

// FuzzShellText: no text breaks the reader, and what can be told of all shells can be told of each.
func FuzzShellText(f *testing.F) {
	for _, text := range traps {
		f.Add(text)
	}
	f.Add("cat <<E\n$(")
	f.Add("ls `\\")
	f.Add("${")
	f.Fuzz(func(t *testing.T, text string) {
		all := readScript(text, setting{shells: anyShell})
		for _, one := range []dialect{bash, dash, busybox, mksh, zsh, sh} {
			s := readScript(text, setting{shells: one})
			if all.untold == "" && s.untold != "" {
				t.Errorf("%q can be told of all shells, and not of %05b: %s", text, one, s.untold)
			}
			if len(s.commands) != len(all.commands) {
				t.Errorf("%q has %d commands for all shells, %d for %05b", text, len(all.commands), len(s.commands), one)
			}
		}
	})
}
