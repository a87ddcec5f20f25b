package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/settings"
)

func init() { lookGroups = append(lookGroups, settingLooks) }

func settingCommands() []*command {
	return []*command{{name: "system"}, {name: "prompt"}, {name: "config"}}
}

func settingLooks() map[string]look {
	config := orFails(preparing(readConfig, as((*run).configured)), func(r *run, in *operation.Configuring, err error) error {
		r.notInForce(in.Wrong)
		if missing := (*record.RefError)(nil); errors.As(err, &missing) && missing.Kind == "setting" {
			return noSetting(r, missing.Ref)
		}
		return err
	})
	config.none = func(r *run, in any) {
		if len(in.(*operation.Configuring).Left) == 0 {
			r.note("nothing is held back")
		}
	}
	config.then = func(r *run, in, _ any) error { r.afterConfig(in.(*operation.Configuring)); return nil }
	config.table = settingsTable
	return map[string]look{"prompts.system": promptLook("system prompt"), "prompts.user": promptLook("user prompt"), "settings.config": config}
}

// promptLook is the look of one of a branch's prompts.
func promptLook(what string) look {
	return preparing(func(r *run, in *operation.Prompting) error { return r.readPrompt(in, what) }, as(func(r *run, in *operation.Prompting, v contract.Prompt) {
		switch {
		case in.Dry() && v.Text == nil:
			r.note("%s has no %s", clean(v.Branch), what)
		case in.Dry():
			r.printf("%s\n", clean(*v.Text))
		case v.Text == nil:
			r.printf("removed the %s of %s\n", what, placed(r.done))
		default:
			r.printf("set the %s of %s\n", what, placed(r.done))
		}
	}))
}

// readPrompt reads a prompt that may stand on standard input, and refuses an empty one.
func (r *run) readPrompt(in *operation.Prompting, what string) error {
	if in.Clear && in.Text != nil {
		return usagef("%s --clear takes no text", r.name)
	}
	if in.Text == nil {
		return nil
	}
	text, err := r.text(*in.Text, rawFlag(in.RawInput))
	switch {
	case err != nil:
		return err
	case strings.EqualFold(*in.Text, "clear"):
		return &usageError{r.name + " clear: the " + what + " would be that word", "to remove it: " + r.again(r.name+" --clear")}
	case text == "":
		return &usageError{"the " + what + " is empty", "to remove it: chatctx " + r.name + " --clear"}
	}
	in.Text = &text
	return nil
}

// readConfig parses what config sets and names, and refuses what does not go together.
func readConfig(r *run, in *operation.Configuring) (err error) {
	if in.File {
		return r.readFileConfig(in)
	}
	if in.All && in.Default {
		return usagef("config takes --all-branches or --default, not both")
	}
	if in.Set, in.Names, err = parseSettings(in.Args); err != nil {
		return err
	}
	switch {
	case in.Origin && (in.Accept || in.All || in.Default || len(in.Set) > 0):
		return usagef("config --show-origin is for the settings in force on a branch")
	case in.Accept && len(in.Set) > 0:
		return usagef("config --accept takes names: the values are those of the file")
	case !in.Accept && in.DryRun.DryRun:
		return usagef("config --dry-run shows what --accept would take")
	case len(in.Set) > 0 && len(in.Names) > 0:
		return &usageError{fmt.Sprintf("config: %q has no =", in.Names[0]), "either show (KEY) or set (KEY=VALUE)"}
	}
	return nil
}

// readFileConfig is readConfig for the config file.
func (r *run) readFileConfig(in *operation.Configuring) error {
	if in.All || in.Default || in.Accept || in.DryRun.DryRun || in.Origin {
		return usagef("config --config-file goes with no other place")
	}
	in.Set, in.Write, in.InFile = map[string]json.RawMessage{}, writeConfigFile, map[string]json.RawMessage{}
	for _, a := range in.Args {
		key, value, has := strings.Cut(a, "=")
		set, names := map[string]json.RawMessage{key: jsontree.Quote(value)}, []string(nil)
		if alias := strings.HasPrefix(key, "alias.") || strings.HasPrefix(key, "model."); !alias || !has {
			var err error
			if set, names, err = parseSettings([]string{a}); err != nil {
				return err
			}
		} else if value == "" {
			set[key] = json.RawMessage("null")
		}
		maps.Copy(in.Set, set)
		in.Names = append(in.Names, names...)
	}
	if len(in.Set) > 0 && len(in.Names) > 0 {
		return &usageError{fmt.Sprintf("config: %q has no =", in.Names[0]), "either show (KEY) or set (KEY=VALUE)"}
	}
	conf := r.line.conf
	in.Path = conf.Path
	maps.Copy(in.InFile, conf.Values)
	for prefix, lines := range map[string]map[string]configLine{"alias.": conf.aliases, "model.": conf.models} {
		for name, l := range lines {
			in.InFile[prefix+name] = jsontree.Quote(l.value)
		}
	}
	return nil
}

// configured shows settings of a place, and what was done with them.
func (r *run) configured(in *operation.Configuring, v operation.Configured) {
	of := map[string]string{operation.InStore: "the store", operation.InBranch: clean(v.Branch)}[v.Place]
	if v.Place == operation.InContext && v.Context != nil {
		of = titled(v.Title, *v.Context)
	}
	switch {
	case in.Accept:
		r.printf("of %s:\n", of)
		r.printSettings(v.Settings.Settings)
		if v.Done != nil {
			r.note("undo with: %s", r.undoOf(v.Done))
		}
	case in.File && len(in.Set) > 0:
		r.printf("%s in %s\n", setText(in.Set), clean(in.Path))
	case len(in.Set) > 0:
		of := map[string]string{operation.InStore: "the store, in force wherever conversation and branch have no own value", operation.InContext: "all of " + titled(r.done.Title, r.done.Context)}[v.Place]
		r.printf("%s of %s\n", setText(v.Settings.Settings), cmp.Or(of, placed(r.done)))
	case len(in.Names) == 1:
		r.notInForce(in.Wrong)
		r.printf("%s", plainValue(v.Settings.Settings[in.Names[0]]))
		if at := v.Origins[in.Names[0]]; at != "" {
			r.printf("\t%s", clean(at))
		}
		r.printf("\n")
	default:
		r.notInForce(in.Wrong)
		r.printOrigins(v.Settings.Settings, v.Origins)
		if len(v.Settings.Settings) == 0 {
			r.note("nothing is set; chatctx config KEY=VALUE sets something")
		}
	}
}

// afterConfig says what else there is to know of settings that were set or put in force.
func (r *run) afterConfig(in *operation.Configuring) {
	if len(in.Left) > 0 {
		r.note("still held back, since this version cannot use them: %s", clean(strings.Join(in.Left, ", ")))
	}
	if r.done == nil || r.done.Operation == "" {
		return
	}
	if in.At == operation.InBranch && !r.stopped() {
		r.note("on this branch alone; --all-branches sets it for the conversation, --default for the whole store")
	}
	r.noteKeys(in.Set, in.Wrong)
}

// parseSettings parses KEY=VALUE into what to set (null removes) and KEY into what to show.
func parseSettings(args []string) (set map[string]json.RawMessage, show []string, err error) {
	set = map[string]json.RawMessage{}
	for _, a := range args {
		if err := validText(a); err != nil {
			return nil, nil, err
		}
		key, value, has := strings.Cut(a, "=")
		switch {
		case key == "":
			return nil, nil, &usageError{fmt.Sprintf("config: %q has no key", a), "write KEY=VALUE"}
		case !has:
			show = append(show, key)
		case value == "":
			set[key] = json.RawMessage("null")
		default:
			set[key] = settings.Parse(key, value)
			if err := settings.Check(key, set[key]); err != nil {
				return nil, nil, &usageError{"config: " + err.Error(), "chatctx help config lists all settings; app.NAME is for a program's own"}
			}
			if _, err := cost.Parse(set[key]); key == "prices" && err != nil {
				return nil, nil, &usageError{"config: " + err.Error(), `chatctx config --default 'prices={"gpt-4o": {"input": 2.5, "output": 10, "cache_read": 1.25}}'`}
			}
		}
	}
	return set, show, nil
}

// settingsTable is the table of all settings, for help.
func settingsTable() string {
	var b strings.Builder
	var group settings.Group
	for _, s := range settings.All() {
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(&b, "%s\n", upper(string(group)))
		}
		takes := s.Takes()
		if s.Default != "" {
			takes += "; default " + s.Default
		}
		if s.Scope != settings.Nearest {
			takes += "; " + s.Scope.String()
		}
		b.WriteString(listed(s.Title(), s.Does+" ("+takes+")", 26))
	}
	return b.String()
}

// setText says which settings were set and which were removed.
func setText(set map[string]json.RawMessage) string {
	var done, gone []string
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if string(set[key]) == "null" {
			gone = append(gone, key)
		} else {
			done = append(done, key)
		}
	}
	switch {
	case len(gone) == 0:
		return "set " + strings.Join(done, ", ")
	case len(done) == 0:
		return "removed " + strings.Join(gone, ", ")
	}
	return "set " + strings.Join(done, ", ") + " and removed " + strings.Join(gone, ", ")
}

// noteKeys reports the keys that have no effect where they were set, and new addresses to which no key goes.
func (r *run) noteKeys(set map[string]json.RawMessage, wrong []error) {
	r.noteKey(set)
	r.notInForce(wrong)
	for _, under := range []string{"", "compact.", "embedding."} {
		name := plainValue(set[under+"key_env"])
		if set[under+"key_env"] == nil || name == "null" {
			continue
		}
		for _, address := range providerPlace(plainValue(set[under+"provider"])).BaseEnv {
			if u, err := url.Parse(os.Getenv(address)); set[under+"base_url"] == nil && os.Getenv(address) != "" && (err != nil || !wire.KnownHost(u)) {
				r.note("%s goes to the provider's own host; to the address in %s goes the key that stands beside it", clean(name), address)
			}
		}
	}
}

// providerPlace returns the address of a provider and its key, the zero Place for a provider that is not there.
func providerPlace(provider string) wire.Place {
	s, _ := adapter.ServiceOf(provider)
	return s.Place
}

// noteKey reports new addresses to which no key goes although one is set.
func (r *run) noteKey(set map[string]json.RawMessage) {
	for _, under := range []string{"", "compact.", "embedding."} {
		address := plainValue(set[under+"base_url"])
		u, err := url.Parse(address)
		if set[under+"base_url"] == nil || set[under+"key_env"] != nil || err != nil || u.Host == "" {
			continue
		}
		provider := settings.Default
		if p := set[under+"provider"]; p != nil {
			provider = plainValue(p)
		}
		for _, name := range providerPlace(provider).KeyEnv {
			if os.Getenv(name) != "" && !wire.KnownHost(u) {
				r.note("no key goes to %s; chatctx config %skey_env=%s sends it there", clean(u.Host), under, name)
			}
		}
	}
}

// notInForce reports settings that are not in force, each once in a run of the program.
func (r *run) notInForce(ignored []error) {
	for _, err := range ignored {
		if _, told := r.con.told.LoadOrStore(err.Error(), true); !told {
			r.note("not in force: %s", clean(err.Error()))
		}
	}
}

// checkEnv reports the settings of the environment that are not in force.
func (r *run) checkEnv() {
	_, wrong := settings.FromEnv(os.Getenv)
	r.notInForce(wrong)
}

func (r *run) printSettings(settings map[string]json.RawMessage) {
	for _, k := range slices.Sorted(maps.Keys(settings)) {
		r.printf("%s=%s\n", clean(k), plainValue(settings[k]))
	}
}

// printOrigins prints settings, each with where it comes from if that is asked for.
func (r *run) printOrigins(all map[string]json.RawMessage, origins map[string]string) {
	if origins == nil {
		r.printSettings(all)
		return
	}
	for _, k := range slices.Sorted(maps.Keys(all)) {
		r.printf("%s=%s\t%s\n", clean(k), plainValue(all[k]), clean(origins[k]))
	}
}

// noSetting returns the error for a setting without a value here: one that this program knows is merely not set.
func noSetting(r *run, key string) error {
	known, ok := settings.Lookup(key)
	if !ok {
		return base.NotFound("setting", key)
	}
	err := fmt.Errorf("%s is not set%w", key, unset{})
	if known.Default != "" {
		err = fmt.Errorf("%s is not set, so that %s holds%w", key, known.Default, unset{})
	}
	return &hinted{err, r.again("config "+key+"=VALUE") + "   for the whole store: --default"}
}

// unset is an ErrNotFound that adds no words.
type unset struct{}

func (unset) Error() string { return "" }
func (unset) Unwrap() error { return chatctx.ErrNotFound }
