package cli

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// severalMeanings are the flags that have more than one type or sentence, and why.
var severalMeanings = map[string]string{
	"branch": "of new the branch to copy, of cost the branch to count",
	"model":  "send, ask, retry and replay take it several times, since they can ask several models; the sentence is the same",
}

// TestFlagsMeanOneThing: what help shows has one type and one sentence a flag, but for those that say why not.
func TestFlagsMeanOneThing(t *testing.T) {
	type meaning struct {
		kind kind
		text string
	}
	meanings := map[string]map[meaning][]string{}
	var walk func(above string, list []*command)
	walk = func(above string, list []*command) {
		for _, c := range list {
			name := above + c.name
			for _, f := range c.flags {
				if c.hidden {
					continue
				}
				if meanings[f.name] == nil {
					meanings[f.name] = map[meaning][]string{}
				}
				m := meaning{f.kind, f.usage}
				meanings[f.name][m] = append(meanings[f.name][m], name)
			}
			walk(name+" ", c.subs)
		}
	}
	walk("", allCommands())
	for _, name := range slices.Sorted(maps.Keys(meanings)) {
		all := meanings[name]
		_, excused := severalMeanings[name]
		if len(all) == 1 && excused {
			t.Errorf("--%s has one meaning: take it off the list", name)
		}
		if len(all) == 1 || excused {
			continue
		}
		for m, commands := range all {
			t.Errorf("--%s means in %s: %s", name, strings.Join(commands, ", "), m.text)
		}
	}
	for name := range severalMeanings {
		if meanings[name] == nil {
			t.Errorf("no command has --%s: take it off the list", name)
		}
	}
}

// TestOldSpellings: a flag's spelling of before is read as ever and shown nowhere, and no flag of another command lost its meaning to it.
func TestOldSpellings(t *testing.T) {
	var walk func(above string, list []*command)
	n := 0
	walk = func(above string, list []*command) {
		for _, c := range list {
			name := above + c.name
			for _, f := range c.flags {
				for _, old := range f.old {
					n++
					o := &orderer{out: parsed{path: []*command{c}}}
					if got, own := o.find(old); got != f || !own {
						t.Errorf("%s: %s is not the old spelling of --%s", name, old, f.name)
					}
					if slices.ContainsFunc(c.flags, func(other *flag) bool { return other != f && other.answersTo(old) }) {
						t.Errorf("%s: %s means two flags", name, old)
					}
					for _, shown := range flagsHere(&o.out) {
						if shown.name == old {
							t.Errorf("%s: completion shows the old spelling %s", name, old)
						}
					}
				}
			}
			walk(name+" ", c.subs)
		}
	}
	if walk("", allCommands()); n < 40 {
		t.Errorf("%d old spellings, less than there were", n)
	}
	var b strings.Builder
	_ = printHelp(&b, &parsed{path: []*command{findCommand(allCommands(), "interrupt")}})
	help := b.String()
	if strings.Contains(help, "--all") || !strings.Contains(help, "--question") {
		t.Errorf("the help of interrupt shows an old spelling:\n%s", help)
	}
}
