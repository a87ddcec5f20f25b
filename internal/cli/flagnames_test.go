package cli

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// severalMeanings are the flags that have more than one type or sentence, and why.
var severalMeanings = map[string]string{
	"all":         "what all of them are depends on the command: calls, titles, tools, conversations",
	"as":          "retry and edit make the branch of this name, branch restore brings one back under it",
	"by":          "cost groups by it, and decisions name a person",
	"call":        "add answers a call by the provider's id, a rule is for one of ours",
	"check":       "backup reads a file, request looks at the repairs",
	"dry-run":     "send says what it would cost, since nothing else would happen",
	"everywhere":  "it is the default of lists, and widens what decisions select",
	"file":        "send and ask read standard input too",
	"from":        "the beginning of what the command does: a conversation, a message, a turn, a file",
	"keep":        "a store in its place, or a sub-context",
	"keep-tokens": "compact keeps messages, prune keeps results",
	"key":         "serve's is the key of a certificate, and append's has the line's number behind it",
	"mode":        "a rule asks for the mode that new and sub start set",
	"model":       "who is asked, who said it, or whose messages are looked for; ask takes several",
	"n":           "how many are listed, or how often a model is asked; log counts from the end",
	"older-than":  "a conversation, a branch, or what is in the trash",
	"raw":         "log shows text as it is, others keep the last newline of what they read",
	"reason":      "that of a task's end is a result",
	"run":         "bisect runs a program, sub start runs the task",
	"set":         "send and ask name the model that a setting is for",
	"store":       "op log lists what was done to the store, rules and tools are for all conversations",
	"summary":     "merge puts its own in place of messages",
	"system":      "sub start takes no standard input for it, which has the goal",
	"timeout":     "of a wait, of one run, or of every run of a tool",
	"to":          "the end of a stretch, or the branch that gets a summary",
	"tool":        "search names one, lists of calls take a pattern",
	"trash":       "ls lists it instead, search looks into it too",
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
				if c.hidden || f.hidden {
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
