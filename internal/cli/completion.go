package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/chatctx/exchange"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/view"
)

type completionIn struct {
	Shell string `arg:"SHELL"`
}

func doCompletion(r *run, in *completionIn) error {
	script, ok := completionScripts[in.Shell]
	if in.Shell == "pwsh" {
		script, ok = completionScripts["powershell"]
	}
	if !ok {
		return &usageError{fmt.Sprintf("no completion for %q", in.Shell), "there is one for " + strings.Join(slices.Sorted(maps.Keys(completionScripts)), ", ")}
	}
	return r.emit(map[string]string{"shell": in.Shell, "script": script}, func() { r.printf("%s", script) })
}

// candidate is a word that may stand in a place, with a hint.
type candidate struct{ word, hint string }

type completeIn struct {
	Words []string `arg:"[WORD…],empty"`
}

// doComplete prints candidates for the last of its arguments, which are the words of a command line after its name: a line for each, with a tab between
// word and hint. It fails silently, since a completion must not disturb a command line.
func doComplete(r *run, in *completeIn) error {
	words := in.Words
	if len(words) == 0 {
		words = []string{""}
	}
	for _, c := range r.candidates(words[:len(words)-1], words[len(words)-1]) {
		r.printf("%s\t%s\n", oneLine(c.word), cut(oneLine(c.hint), 60))
	}
	return nil
}

// candidates returns the words that may follow before and begin with last.
func (r *run) candidates(before []string, last string) []candidate {
	p, wanting := splitUnfinished(before)
	switch {
	case wanting != nil:
		return begin(r.values(p, valueWord(wanting), last), last)
	case strings.HasPrefix(last, "--") && strings.Contains(last, "="):
		name, value, _ := strings.Cut(last, "=")
		var list []candidate
		for _, f := range flagsHere(p) {
			if "--"+f.name == name {
				for _, c := range begin(r.values(p, valueWord(f), value), value) {
					list = append(list, candidate{name + "=" + c.word, c.hint})
				}
			}
		}
		return list
	case strings.HasPrefix(last, "-"):
		var list []candidate
		for _, f := range flagsHere(p) {
			name, usage := flagText(f)
			name, _, _ = strings.Cut(name, " ")
			list = append(list, candidate{name, usage})
		}
		return begin(list, last)
	}
	return begin(r.words(p, last), last)
}

// splitUnfinished splits a command line that is being typed. wanting is the flag that needs a value next.
func splitUnfinished(before []string) (p *parsed, wanting *flag) {
	o := &orderer{table: allCommands(), rest: before}
	for len(o.rest) > 0 {
		switch a := o.next(); {
		case a == "--":
			o.out.args, o.rest = append(o.out.args, o.rest...), nil
		case !looksLikeFlag(a):
			rest := o.rest
			if o.word(a); o.out.wantsCommand() { // no command: it is passed over
				o.out.args, o.rest = nil, rest
			}
		default:
			if f, _ := o.find(strings.TrimLeft(a, "-")); f != nil && takesValue(f) && len(o.rest) == 0 {
				return &o.out, f
			}
			if strings.HasPrefix(a, "--") {
				_ = o.long(a[2:])
			} else {
				_ = o.short(a[1:])
			}
		}
	}
	return &o.out, nil
}

// flagsHere returns the flags that may follow the words so far.
func flagsHere(p *parsed) []*flag {
	if c := p.command(); c != nil {
		return append(slices.Clone(c.flags), slices.DeleteFunc(sharedFlags(c.scope), c.hides)...)
	}
	return sharedFlags(onBranch)
}

// words returns the commands or arguments that may come next.
func (r *run) words(p *parsed, last string) []candidate {
	c := p.command()
	under := allCommands()
	if c != nil {
		under = c.subs
	}
	var list []candidate
	if len(p.args) == 0 {
		list = namesOf(under)
	}
	if c == nil {
		return list
	}
	places := c.arguments()
	if len(places) == 0 {
		return list
	}
	at := len(p.args)
	if at >= len(places) {
		if at = len(places) - 1; !places[at].many {
			return list
		}
	}
	return append(list, r.values(p, places[at].word, last)...)
}

// begin keeps the candidates with a prefix, ignoring case.
func begin(list []candidate, prefix string) []candidate {
	var out []candidate
	for _, c := range list {
		if len(c.word) >= len(prefix) && strings.EqualFold(c.word[:len(prefix)], prefix) {
			out = append(out, c)
		}
	}
	return out
}

// manyCandidates bounds how many names are offered.
const manyCandidates = 200

// fixedWords returns the fixed words for some places.
func fixedWords(word string) []string {
	if strings.Contains(word, " | ") {
		return strings.Split(strings.ToLower(word), " | ")
	}
	switch word {
	case "ROLE":
		return []string{"system", "user", "assistant", "tool"}
	case "PROVIDER":
		return settingWords("provider")
	case "ENCODING":
		return settingWords("encoding")
	case "SHELL":
		return []string{"bash", "zsh", "fish", "powershell"}
	case "STATE":
		return []string{"pending", "approved", "running", "uncertain"}
	case "EFFECT":
		return []string{"allow", "deny", "ask"}
	case "FORMAT":
		var names []string
		for _, f := range exchange.ExportFormats() {
			names = append(names, f.Name)
		}
		return names
	}
	return nil
}

// values returns the candidates for a word of a command's arguments or a flag's value, of which last is typed already.
func (r *run) values(p *parsed, word, last string) []candidate {
	var list []candidate
	fixed := fixedWords(word)
	if c := p.command(); c != nil && c.words[word] != nil {
		fixed = c.words[word]
	}
	for _, w := range fixed {
		list = append(list, candidate{w, ""})
	}
	if list != nil {
		return list
	}
	r.wait = 300 * time.Millisecond
	sub := &run{ctx: r.ctx, con: r.con, cmd: p.command(), name: p.name(), common: p.over(r.common), wait: r.wait, opened: &closers{}, executors: &executors{}}
	defer sub.close()
	switch word {
	case "CTX":
		return sub.contextNames()
	case "BRANCH":
		return sub.branchNames()
	case "REF", "A..B":
		if p.name() == "pick" && len(p.args) > 0 { // its messages are read on the branch that it names
			sub.common.Branch = p.args[0]
		}
		return sub.references(last)
	case "TAG":
		return sub.tagNames()
	case "LABEL":
		return sub.labelNames()
	case "TEMPLATE":
		return sub.templateNames()
	case "OP":
		return sub.operationNumbers()
	case "MODEL":
		return sub.modelNames()
	case "MODELS":
		asked := strings.Split(last, ",")
		rest := slices.DeleteFunc(sub.modelNames(), func(c candidate) bool { return slices.Contains(asked[:len(asked)-1], c.word) })
		return after(last, ",", rest)
	case "MODEL:KEY=VALUE":
		if model, _, ok := strings.Cut(last, ":"); ok {
			return after(model+":", ":", settingValues(nil))
		}
		return sub.modelNames()
	case "KEY=VALUE":
		return settingValues(sub.modelNames())
	case "TOOL", "PATTERN":
		return sub.toolNames()
	case "RULE":
		return sub.ruleNames()
	case "CALL":
		return sub.callNames(p.name())
	case "CALL|TOOL":
		return slices.Concat(sub.callNames(""), sub.toolNames())
	case "COMMAND":
		return commandNames(p.args)
	}
	return nil
}

// commandNames returns the commands below the one that words name, all commands for none.
func commandNames(words []string) []candidate {
	under := allCommands()
	for _, w := range words {
		i := slices.IndexFunc(under, func(c *command) bool { return c.name == w })
		if i < 0 {
			return nil
		}
		under = under[i].subs
	}
	return namesOf(under)
}

func namesOf(commands []*command) []candidate {
	var list []candidate
	for _, c := range commands {
		if !c.hidden {
			list = append(list, candidate{c.name, c.does})
		}
	}
	return list
}

// after puts the text up to the last separator before each candidate.
func after(last, separator string, list []candidate) []candidate {
	i := strings.LastIndex(last, separator)
	if i < 0 {
		return list
	}
	out := make([]candidate, len(list))
	for n, c := range list {
		out[n] = candidate{last[:i+len(separator)] + c.word, c.hint}
	}
	return out
}

func settingWords(name string) []string {
	s, _ := settings.Lookup(name)
	return strings.Fields(s.Words)
}

func (r *run) contextNames() []candidate {
	st, err := r.reader()
	if err != nil {
		return nil
	}
	var list []candidate
	for info, err := range st.Contexts(r.ctx, record.ListOptions{Trash: r.cmd != nil && r.cmd.name == "restore"}) {
		if err != nil || len(list) >= manyCandidates {
			break
		}
		hint := fmt.Sprintf("%s, %s", count(info.Messages, "message"), moment(info.Updated))
		if info.Title != "" && oneLine(info.Title) == info.Title {
			list = append(list, candidate{info.Title, short(info.ID) + " " + hint})
		}
		list = append(list, candidate{short(info.ID), info.Title})
	}
	return list
}

func (r *run) labelNames() []candidate {
	st, err := r.reader()
	if err != nil {
		return nil
	}
	labels, err := view.Labels(r.ctx, base.Of(st))
	if err != nil {
		return nil
	}
	var list []candidate
	for _, l := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, candidate{l, count(labels[l], "conversation")})
	}
	return list
}

// ofContext returns a candidate for each of what find finds for the current context, none if there is an error.
func ofContext[T any](r *run, find func(*chatctx.ChatContext) ([]T, error), of func(T) candidate) []candidate {
	c, err := r.conversation()
	if err != nil {
		return nil
	}
	all, err := find(c)
	if err != nil {
		return nil
	}
	var list []candidate
	for _, one := range all {
		list = append(list, of(one))
	}
	return list
}

// toolNames returns the tools of the context and of all contexts.
func (r *run) toolNames() []candidate {
	return ofContext(r, func(c *chatctx.ChatContext) ([]record.KeptTool, error) { return r.st.Tools(r.ctx, c.ID) },
		func(t record.KeptTool) candidate { return candidate{t.Name, t.Description} })
}

// ruleNames returns the rules of the context and of the store.
func (r *run) ruleNames() []candidate {
	return ofContext(r, func(c *chatctx.ChatContext) ([]*record.Rule, error) { return r.st.Rules(r.ctx, c.ID) },
		func(rule *record.Rule) candidate { return candidate{short(rule.ID), rule.Effect + " " + rule.Tool} })
}

// operationNumbers returns the newest operations that can still be undone.
func (r *run) operationNumbers() []candidate {
	st, err := r.reader()
	if err != nil {
		return nil
	}
	var list []candidate
	for op, err := range journal.AllOperations(r.ctx, base.Of(st), r.contextRef()) {
		if err != nil || len(list) >= manyCandidates {
			break
		}
		if !op.Undone {
			list = append(list, candidate{op.ID, strings.TrimSpace(op.What + " " + strings.Join(op.Branches, ", ") + " " + screen.About(op))})
		}
	}
	return list
}

// modelNames returns the models with known prices, and the one that the branch asks.
func (r *run) modelNames() []candidate {
	var list []candidate
	if c, err := r.conversation(); err == nil {
		var model string
		if set, err := c.Effective(r.ctx, r.branchName()); err == nil && json.Unmarshal(settings.WithEnv(set, os.Getenv)["model"], &model) == nil && model != "" {
			list = append(list, candidate{model, "of this branch"})
		}
	}
	for _, name := range cost.Models() {
		list = append(list, candidate{name, ""})
	}
	return list
}

// settingValues returns the settings, each with its possible words.
func settingValues(models []candidate) []candidate {
	var list []candidate
	for _, s := range settings.All() {
		if s.Scope == settings.OfStore {
			continue
		}
		list = append(list, candidate{s.Name + "=", s.Does})
		words := strings.Fields(s.Words)
		if s.Type == settings.Truth {
			words = []string{"true", "false"}
		}
		for _, w := range words {
			list = append(list, candidate{s.Name + "=" + w, ""})
		}
		if s.Name == "model" || strings.HasSuffix(s.Name, ".model") {
			list = append(list, after(s.Name+"=", "=", models)...)
		}
	}
	return list
}

func (r *run) branchNames() []candidate {
	return ofContext(r, func(c *chatctx.ChatContext) ([]*record.BranchInfo, error) { return c.Branches(r.ctx) },
		func(b *record.BranchInfo) candidate { return candidate{b.Name, count(b.Messages, "message")} })
}

func (r *run) tagNames() []candidate {
	c, err := r.conversation()
	if err != nil {
		return nil
	}
	tags, err := c.Tags(r.ctx)
	if err != nil {
		return nil
	}
	var list []candidate
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, candidate{name, short(tags[name])})
	}
	return list
}
