package cli

import (
	"encoding/json"
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
	"github.com/chatctx/chatctx/chatctx/settings"
	"github.com/chatctx/chatctx/internal/contract"
)

func settingCommands() []*command {
	prompt := "operation, context, branch, text; without TEXT: context, branch, text"
	return []*command{
		{name: "system", does: "show or set the branch's system prompt", scope: onBranch, run: in(doSystem),
			json: prompt, example: `chatctx system "Answer in French."`},
		{name: "prompt", does: "show or set the branch's user prompt", scope: onBranch, run: in(doPrompt),
			json: prompt, example: "chatctx prompt - < style.txt"},
		{name: "config", does: "show or set the branch's settings", scope: onBranch, run: in(doConfig),
			more:  "KEY= removes a setting; KEY alone shows it. A text is taken literally, unless it is a quoted JSON string; other values are JSON. The nearest place wins: a flag of the command, the branch, the conversation (--all), the store (--default), the environment (CHATCTX_ and the name in capitals, _ for a dot). If a place has its own base_url or another provider, the address of every wider place no longer counts, nor do the settings there that are marked with its address; a key_env counts only with the base_url of its own place. Without arguments config shows the settings in force, or with --all or --default those of that place.",
			table: settingsTable,
			json:  "settings, not_in_force[]; operation, context, branch", example: `chatctx config model=gpt-4o temperature=0.2
chatctx config --all mode=plan
chatctx config --default model=claude-sonnet-4-5`},
	}
}

type promptIn struct {
	Text  *string `arg:"[TEXT|-]"`
	Clear bool    `flag:"clear" doc:"remove it"`
	rawFlag
}

func doSystem(r *run, in *promptIn) error {
	return r.promptCommand(in, "system prompt", func(b *record.BranchInfo) string { return b.System }, (*chatctx.Batch).SetSystem)
}

func doPrompt(r *run, in *promptIn) error {
	return r.promptCommand(in, "user prompt", func(b *record.BranchInfo) string { return b.Prompt }, (*chatctx.Batch).SetPrompt)
}

// promptCommand shows or sets one of a branch's prompts.
func (r *run) promptCommand(in *promptIn, what string, get func(*record.BranchInfo) string, set func(*chatctx.Batch, string)) error {
	if in.Clear && in.Text != nil {
		return usagef("%s --clear takes no text", r.name)
	}
	if in.Text == nil && !in.Clear {
		c, snap, err := r.snapshot()
		if err != nil {
			return err
		}
		text := get(snap.Info)
		return r.emit(promptJSON{Where: where{Context: c.ID, Branch: snap.Info.Name}, Text: stringOrNull(text)}, func() {
			if text == "" {
				r.note("%s has no %s", clean(snap.Info.Name), what)
				return
			}
			r.printf("%s\n", clean(text))
		})
	}
	text, err := r.text(valueOf(in.Text), in.rawFlag)
	if err != nil {
		return err
	}
	if strings.EqualFold(valueOf(in.Text), "clear") {
		return &usageError{r.name + " clear: the " + what + " would be that word", "to remove it: " + r.again(r.name+" --clear")}
	}
	if text == "" && !in.Clear {
		return &usageError{"the " + what + " is empty", "to remove it: chatctx " + r.name + " --clear"}
	}
	c, err := r.change(func(b *chatctx.Batch) { set(b, text) })
	if err != nil {
		return err
	}
	done := "set"
	if text == "" {
		done = "removed"
	}
	return r.made(c, promptJSON{Where: whereOf(c), Text: stringOrNull(text)}, "%s the %s of %s", done, what, placed(c))
}

type configIn struct {
	Settings []string `arg:"[KEY=VALUE…]"`
	All      bool     `flag:"all" doc:"those of the conversation, for all its branches"`
	Accept   bool     `flag:"accept" doc:"show the settings that an imported file brought and that are held back, and put them in force: all, or those named by KEY"`
	dryRunFlag
	Default bool `flag:"default" doc:"those of the store, in force where conversation and branch have no value of their own"`
	Store   bool `flag:"store" doc:"the old name of --default"`
}

// ofStore reports whether the store's settings are meant.
func (in *configIn) ofStore() bool { return in.Default || in.Store }

func doConfig(r *run, in *configIn) error {
	if in.All && in.ofStore() {
		return usagef("config takes --all or --default, not both")
	}
	set, show, err := parseSettings(in.Settings)
	if err != nil {
		return err
	}
	if in.Accept {
		if len(set) > 0 {
			return usagef("config --accept takes names: the values are those of the file")
		}
		return acceptSettings(r, in, show)
	}
	if in.DryRun {
		return usagef("config --dry-run shows what --accept would take")
	}
	if len(set) == 0 {
		return showSettings(r, in, show)
	}
	if len(show) > 0 {
		return &usageError{fmt.Sprintf("config: %q has no =", show[0]), "either show (KEY) or set (KEY=VALUE)"}
	}
	return setSettings(r, in, set)
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

// place returns where config sets settings: the store, the context or the branch, as its flags say. A key alone goes to the place of its address, since it
// counts nowhere else.
func (r *run) place(in *configIn, set map[string]json.RawMessage) (string, error) {
	switch {
	case in.ofStore():
		return "store", nil
	case in.All:
		return "context", nil
	case set["key_env"] == nil || len(set) > 1:
		return "branch", nil
	}
	c, snap, err := r.snapshot()
	if err != nil {
		return "", err
	}
	info, err := c.Info(r.ctx)
	if err != nil {
		return "", err
	}
	store, err := r.st.Settings(r.ctx)
	r.close()
	switch {
	case err != nil:
		return "", err
	case snap.Info.Settings["base_url"] != nil:
	case info.Settings["base_url"] != nil:
		return "context", nil
	case store["base_url"] != nil:
		return "store", nil
	}
	return "branch", nil
}

func setSettings(r *run, in *configIn, set map[string]json.RawMessage) error {
	var c *chatctx.Committed
	place, err := r.place(in, set)
	if err != nil {
		return err
	}
	of := ""
	switch place {
	case "store":
		var st *chatctx.Store
		if st, err = r.writer(); err == nil {
			c, err = st.SetSettings(r.ctx, set)
		}
		of = "the store, in force wherever conversation and branch have no own value"
	case "context":
		c, err = r.change(func(b *chatctx.Batch) { b.SetContextSettings(set) })
	default:
		c, err = r.change(func(b *chatctx.Batch) { b.SetSettings(set) })
	}
	if err != nil {
		return err
	}
	v := settingsJSON{Operation: c.Operation, Context: idOrNull(c.Context), Branch: c.Branch, Settings: set}
	switch place {
	case "context":
		v.Branch = ""
		of = "all of " + titled(c.Title, c.Context)
	case "branch":
		of = placed(c)
	}
	if err := r.made(c, v, "%s of %s", setText(set), of); err != nil {
		return err
	}
	if place == "branch" && !r.stopped() && c.Operation != "" {
		r.note("on this branch alone; --all sets it for the conversation, --default for the whole store")
	}
	if c.Operation != "" {
		return r.noteKeys(in, set)
	}
	return nil
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
func (r *run) noteKeys(in *configIn, set map[string]json.RawMessage) error {
	r.noteKey(set)
	for _, under := range []string{"", "compact.", "embedding."} {
		name := plainValue(set[under+"key_env"])
		if set[under+"key_env"] == nil || name == "null" {
			continue
		}
		_, ignored, err := readSettings(r, in)
		if err != nil {
			return err
		}
		r.notInForce(ignored)
		for _, address := range providerPlace(plainValue(set[under+"provider"])).BaseEnv {
			if u, err := url.Parse(os.Getenv(address)); set[under+"base_url"] == nil && os.Getenv(address) != "" && (err != nil || !wire.KnownHost(u)) {
				r.note("%s goes to the provider's own host; to the address in %s goes the key that stands beside it", clean(name), address)
			}
		}
	}
	return nil
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

// showSettings prints settings: all of a place, or some keys.
func showSettings(r *run, in *configIn, keys []string) error {
	v, ignored, err := readSettings(r, in)
	if err != nil {
		return err
	}
	r.notInForce(ignored)
	if len(keys) > 0 {
		some := map[string]json.RawMessage{}
		for _, k := range keys {
			raw, ok := v.Settings[k]
			if !ok {
				return noSetting(r, k)
			}
			some[k] = raw
		}
		v.Settings = some
	}
	v.Ignored = contract.Texts(ignored)
	return r.emit(v, func() {
		if len(keys) == 1 {
			r.printf("%s\n", plainValue(v.Settings[keys[0]]))
			return
		}
		r.printSettings(v.Settings)
		if len(v.Settings) == 0 {
			r.note("nothing is set; chatctx config KEY=VALUE sets something")
		}
	})
}

// readSettings reads the settings of the place that the flags name, and returns which of them are not in force.
func readSettings(r *run, in *configIn) (*settingsJSON, []error, error) {
	if in.ofStore() {
		st, err := r.reader()
		if err != nil {
			return nil, nil, err
		}
		s, err := st.Settings(r.ctx)
		return &settingsJSON{Settings: contract.Values(s)}, settings.Ignored(s), err
	}
	c, snap, err := r.snapshot()
	if err != nil {
		return nil, nil, err
	}
	if in.All {
		info, err := c.Info(r.ctx)
		if err != nil {
			return nil, nil, err
		}
		return &settingsJSON{Context: &c.ID, Settings: contract.Values(info.Settings)}, settings.Ignored(info.Settings), nil
	}
	s, err := c.Effective(r.ctx, snap.Info.Name)
	if err != nil {
		return nil, nil, err
	}
	ignored, err := c.Ignored(r.ctx, snap.Info.Name)
	return &settingsJSON{Context: &c.ID, Branch: snap.Info.Name, Settings: settings.WithEnv(s, os.Getenv)}, ignored, err
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

// heldIn is a place with settings that are held back.
type heldIn struct {
	name   string // for people
	id     chatctx.ID
	branch string
	have   map[string]json.RawMessage
	set    func(map[string]json.RawMessage) (*chatctx.Committed, error)
}

// heldPlaces returns the places that the flags name, or without flags those from which a branch's settings come.
func heldPlaces(r *run, in *configIn) ([]heldIn, error) {
	st, err := r.open(chatctx.Options{ReadOnly: in.DryRun})
	if err != nil {
		return nil, err
	}
	var places []heldIn
	if !in.All {
		have, err := st.Settings(r.ctx)
		if err != nil {
			return nil, err
		}
		places = append(places, heldIn{name: "the store", have: have, set: func(set map[string]json.RawMessage) (*chatctx.Committed, error) { return st.SetSettings(r.ctx, set) }})
	}
	if in.ofStore() {
		return places, nil
	}
	c, err := st.Context(r.ctx, r.contextRef())
	if err != nil {
		return nil, contextHint(err)
	}
	info, err := c.Info(r.ctx)
	if err != nil {
		return nil, err
	}
	change := func(branch string, fill func(*chatctx.Batch, map[string]json.RawMessage)) func(map[string]json.RawMessage) (*chatctx.Committed, error) {
		return func(set map[string]json.RawMessage) (*chatctx.Committed, error) {
			b := c.Begin(branch)
			fill(b, set)
			return b.Commit(r.ctx)
		}
	}
	places = append(places, heldIn{name: titled(info.Title, info.ID), id: c.ID, have: info.Settings, set: change("", (*chatctx.Batch).SetContextSettings)})
	if in.All {
		return places, nil
	}
	b, err := c.Branch(r.ctx, r.branchName())
	if err != nil {
		return nil, err
	}
	return append(places, heldIn{name: clean(b.Name), id: c.ID, branch: b.Name, have: b.Settings, set: change(b.Name, (*chatctx.Batch).SetSettings)}), nil
}

// acceptSettings shows what is held back and puts it in force.
func acceptSettings(r *run, in *configIn, names []string) error {
	places, err := heldPlaces(r, in)
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, p := range places {
		held := settings.Held(p.have)
		set := settings.Accept(p.have, names...)
		if len(set) == 0 {
			continue
		}
		v := settingsJSON{Context: idOrNull(p.id), Branch: p.branch, Settings: map[string]json.RawMessage{}}
		for name, value := range held {
			if _, ok := set[name]; ok {
				v.Settings[name], taken[name] = value, true
			}
		}
		back := ""
		if !in.DryRun {
			done, err := p.set(set)
			if err != nil {
				return err
			}
			v.Operation, back = done.Operation, r.undoOf(done)
		}
		err := r.emit(v, func() {
			r.printf("of %s:\n", p.name)
			r.printSettings(v.Settings)
			if v.Operation != "" {
				r.note("take it back: %s", back)
			}
		})
		if err != nil {
			return err
		}
	}
	for _, name := range names {
		if !taken[name] {
			return chatctx.NotFound("setting that is held back", name)
		}
	}
	switch left := unknownHeld(places, taken); {
	case len(left) > 0 && len(names) == 0:
		r.note("still held back, since this version cannot use them: %s", strings.Join(left, ", "))
	case len(taken) == 0:
		r.note("nothing is held back")
	}
	return nil
}

// unknownHeld returns the names that stay held back, since this program cannot put them in force.
func unknownHeld(places []heldIn, taken map[string]bool) []string {
	left := map[string]bool{}
	for _, p := range places {
		for name := range settings.Held(p.have) {
			if !taken[name] {
				left[clean(name)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(left))
}

// noSetting returns the error for a setting without a value here: one that this program knows is merely not set.
func noSetting(r *run, key string) error {
	known, ok := settings.Lookup(key)
	if !ok {
		return chatctx.NotFound("setting", key)
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
