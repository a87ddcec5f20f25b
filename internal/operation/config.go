package operation

import (
	"encoding/json"
	"iter"
	"maps"
	"os"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/view"
)

// Prompting says what becomes of a prompt of a branch. Without a text and Clear it is shown.
type Prompting struct {
	Change
	Text  *string `json:"text,omitempty" arg:"[TEXT|-]" doc:"the prompt"`
	Clear bool    `json:"clear,omitempty" flag:"clear" doc:"remove it"`
	RawInput
}

// Dry reports whether the prompt is only shown.
func (in *Prompting) Dry() bool { return in.Text == nil && !in.Clear }

// prompting shows or sets one of a branch's prompts.
func prompting(get func(*record.BranchInfo) string, set func(*chatctx.Batch, string)) func(*Request, *Prompting) (contract.Prompt, error) {
	return func(r *Request, in *Prompting) (v contract.Prompt, err error) {
		if in.Dry() {
			c, snap, err := r.snapshot(in.Target)
			if err != nil {
				return v, err
			}
			return contract.Prompt{Where: contract.Where{Context: c.ID, Branch: snap.Info.Name}, ID: promptID(get(snap.Info)), Text: contract.String(get(snap.Info))}, nil
		}
		text := ""
		if in.Text != nil {
			text = *in.Text
		}
		done, err := r.commit(in.Change, func(b *chatctx.Batch) { set(b, text) })
		if err != nil {
			return v, err
		}
		return contract.Prompt{Where: contract.WhereOf(done), ID: promptID(text), Text: contract.String(text)}, nil
	}
}

// promptID returns the id of a prompt with this text, nil for none.
func promptID(text string) *string { return contract.String(branchstore.PromptID(text)) }

// Configuring says which settings to show, to set or to put in force, and where they stand.
type Configuring struct {
	Target
	Args   []string `json:"-" arg:"[KEY=VALUE…]"`
	All    bool     `json:"-" flag:"all-branches" old:"all" doc:"those of the conversation, for all its branches"`
	Accept bool     `json:"-" flag:"accept" doc:"show the settings that an imported file brought and that are held back, and put them in force: all, or those named by KEY"`
	DryRun
	Default bool `json:"-" flag:"default" old:"store" doc:"those of the store, in force where conversation and branch have no value of their own"`

	File   bool `json:"-" flag:"config-file" old:"file" doc:"those of the config file, which are behind all others, with its aliases as alias.NAME and model.NAME"`
	Origin bool `json:"-" flag:"show-origin" doc:"show from where each value comes"`

	Path   string                                               `json:"-"` // of the config file
	InFile map[string]json.RawMessage                           `json:"-"` // what stands there
	Write  func(set map[string]json.RawMessage) (string, error) `json:"-"` // changes it

	Set   map[string]json.RawMessage `json:"-"` // what Args set; null removes
	Names []string                   `json:"-"` // what Args name

	// What is said beside the result.
	At    string   `json:"-"` // where settings were set
	Wrong []error  `json:"-"` // which settings are not in force, and why
	Left  []string `json:"-"` // which settings stay held back, since this program cannot use them
}

// Dry reports whether settings are only shown.
func (in *Configuring) Dry() bool {
	return in.DryRun.DryRun || in.File || len(in.Set) == 0 && !in.Accept
}

// Storeless reports whether no store is needed.
func (in *Configuring) Storeless() bool { return in.File }

// The places of settings.
const (
	InFile    = "file" // the config file of the command line
	InStore   = "store"
	InContext = "context"
	InBranch  = "branch"
)

// place returns the place that the flags name.
func (in *Configuring) place() string {
	switch {
	case in.File:
		return InFile
	case in.Default:
		return InStore
	case in.All:
		return InContext
	}
	return InBranch
}

// Configured are settings of a place, and what was done with them.
type Configured struct {
	contract.Settings
	Origins map[string]string `json:"origins,omitempty"`
	Place   string            `json:"-"`
	Title   string            `json:"-"` // of the conversation
	Done    *record.Committed `json:"-"`
}

func configure(r *Request, in *Configuring) (List[Configured], error) {
	if in.Accept {
		return FirstOf(r, r.acceptSettings(in), 0)
	}
	do := r.showSettings
	if len(in.Set) > 0 {
		do = r.setSettings
	}
	if in.File && len(in.Set) > 0 {
		do = in.writeFile
	}
	v, err := do(in)
	return ListOf([]Configured{v}), err
}

// showSettings returns the settings of a place: all, or those that are named.
func (r *Request) showSettings(in *Configuring) (v Configured, err error) {
	v.Place = in.place()
	if in.File {
		v.Settings.Settings = in.InFile
	} else if v.Settings, in.Wrong, err = r.settingsOf(v.Place, in.Target); err != nil {
		return v, err
	}
	if in.Origin {
		if v.Origins, err = r.origins(in, v.Settings.Settings); err != nil {
			return v, err
		}
	}
	if len(in.Names) == 0 {
		return v, nil
	}
	all := v.Settings.Settings
	v.Settings.Settings = map[string]json.RawMessage{}
	for _, name := range in.Names {
		raw, ok := all[name]
		if !ok {
			return v, base.NotFound("setting", name)
		}
		v.Settings.Settings[name] = raw
	}
	return v, nil
}

// writeFile changes the config file.
func (in *Configuring) writeFile(*Configuring) (v Configured, err error) {
	v.Place, v.Settings.Settings = InFile, in.Set
	in.Path, err = in.Write(in.Set)
	return v, err
}

// origins says from where the settings in force on a branch come.
func (r *Request) origins(in *Configuring, inForce map[string]json.RawMessage) (map[string]string, error) {
	c, snap, err := r.snapshot(in.Target)
	if err != nil {
		return nil, err
	}
	info, err := c.Info(r.Ctx)
	if err != nil {
		return nil, err
	}
	store, err := r.Store.Settings(r.Ctx)
	return settings.Origins(inForce, os.Getenv, []string{"the store", "the conversation", "the branch " + snap.Info.Name}, store, info.Settings, snap.Info.Settings), err
}

// settingsOf returns the settings of a place, of a branch those in force there, and which of them are not in force.
func (r *Request) settingsOf(place string, t Target) (v contract.Settings, wrong []error, err error) {
	defer func() { v.Ignored = contract.Texts(wrong) }()
	if place == InStore {
		s, err := r.Store.Settings(r.Ctx)
		return contract.Settings{Settings: contract.Values(s)}, settings.Ignored(s), err
	}
	c, info, err := r.conversation(t.Context)
	if err != nil {
		return v, nil, err
	}
	if place == InContext {
		return contract.Settings{Context: &c.ID, Settings: contract.Values(info.Settings)}, settings.Ignored(info.Settings), nil
	}
	c, snap, err := r.snapshot(t)
	if err != nil {
		return v, nil, err
	}
	s, err := c.Effective(r.Ctx, snap.Info.Name)
	if err != nil {
		return v, nil, err
	}
	wrong, err = view.Ignored(r.Ctx, base.ContextOf(c.Store(), c.ID), snap.Info.Name)
	return contract.Settings{Context: &c.ID, Branch: snap.Info.Name, Settings: settings.WithEnv(s, os.Getenv)}, wrong, err
}

// setSettings sets settings in a place.
func (r *Request) setSettings(in *Configuring) (v Configured, err error) {
	if v.Place, err = r.placeFor(in); err != nil {
		return v, err
	}
	in.At = v.Place
	v.Settings, err = r.setIn(v.Place, Change{Target: in.Target}, in.Set)
	for _, name := range []string{"key_env", "compact.key_env", "embedding.key_env"} {
		if in.Set[name] != nil && string(in.Set[name]) != "null" && err == nil {
			_, in.Wrong, err = r.settingsOf(in.place(), in.Target)
		}
	}
	return v, err
}

// placeFor returns where settings are set. A key alone goes to the place of its address, since it counts nowhere else.
func (r *Request) placeFor(in *Configuring) (string, error) {
	if in.place() != InBranch || in.Set["key_env"] == nil || len(in.Set) > 1 {
		return in.place(), nil
	}
	c, snap, err := r.snapshot(in.Target)
	if err != nil {
		return "", err
	}
	info, err := c.Info(r.Ctx)
	if err != nil {
		return "", err
	}
	store, err := r.Store.Settings(r.Ctx)
	switch {
	case err != nil:
		return "", err
	case snap.Info.Settings["base_url"] != nil:
	case info.Settings["base_url"] != nil:
		return InContext, nil
	case store["base_url"] != nil:
		return InStore, nil
	}
	return InBranch, nil
}

// setIn sets settings in a place if the caller may.
func (r *Request) setIn(place string, t Change, set map[string]json.RawMessage) (v contract.Settings, err error) {
	if err := r.maySet(set); err != nil {
		return v, err
	}
	have, err := r.settingsAt(place, t.Target)
	if err != nil {
		return v, err
	}
	var done *record.Committed
	switch place {
	case InStore:
		done, err = r.Store.SetSettings(r.Ctx, set)
		r.Done = done
	case InContext:
		done, err = r.onContext(t.Context, func(b *chatctx.Batch) { b.SetContextSettings(set) })
	default:
		done, err = r.commit(t, func(b *chatctx.Batch) { b.SetSettings(set) })
	}
	if err != nil {
		return v, err
	}
	v = contract.Settings{Operation: done.Operation, Context: contract.ID(done.Context), Branch: done.Branch, Settings: settings.Complete(have, set)}
	if place == InContext {
		v.Branch = ""
	}
	return v, nil
}

// settingsAt returns what a place itself sets.
func (r *Request) settingsAt(place string, t Target) (map[string]json.RawMessage, error) {
	if place == InStore {
		return r.Store.Settings(r.Ctx)
	}
	c, err := r.Store.Context(r.Ctx, t.Context)
	if err != nil {
		return nil, err
	}
	if place == InContext {
		info, err := c.Info(r.Ctx)
		if err != nil {
			return nil, err
		}
		return info.Settings, nil
	}
	b, err := c.Branch(r.Ctx, t.Branch)
	if err != nil {
		return nil, err
	}
	return b.Settings, nil
}

// heldIn is a place with settings that may be held back.
type heldIn struct {
	Configured
	have map[string]json.RawMessage
	set  func(map[string]json.RawMessage) (*record.Committed, error)
}

// heldPlaces returns the places that the flags name, or without flags those from which a branch's settings come.
func (r *Request) heldPlaces(in *Configuring) (places []heldIn, err error) {
	add := func(v Configured, have map[string]json.RawMessage, set func(map[string]json.RawMessage) (*record.Committed, error)) {
		v.Settings.Settings = map[string]json.RawMessage{}
		places = append(places, heldIn{v, have, set})
	}
	if !in.All {
		have, err := r.Store.Settings(r.Ctx)
		if err != nil {
			return nil, err
		}
		add(Configured{Place: InStore}, have, func(set map[string]json.RawMessage) (*record.Committed, error) {
			return r.Store.SetSettings(r.Ctx, set)
		})
	}
	if in.Default {
		return places, nil
	}
	c, info, err := r.conversation(in.Context)
	if err != nil {
		return nil, err
	}
	change := func(branch string, fill func(*chatctx.Batch, map[string]json.RawMessage)) func(map[string]json.RawMessage) (*record.Committed, error) {
		return func(set map[string]json.RawMessage) (*record.Committed, error) {
			b := c.Begin(branch)
			fill(b, set)
			return b.Commit(r.Ctx)
		}
	}
	add(Configured{Place: InContext, Title: info.Title, Settings: contract.Settings{Context: &c.ID}}, info.Settings, change("", (*chatctx.Batch).SetContextSettings))
	if in.All {
		return places, nil
	}
	b, err := c.Branch(r.Ctx, in.Branch)
	if err != nil {
		return nil, err
	}
	add(Configured{Place: InBranch, Settings: contract.Settings{Context: &c.ID, Branch: b.Name}}, b.Settings, change(b.Name, (*chatctx.Batch).SetSettings))
	return places, nil
}

// acceptSettings puts settings in force that are held back, place by place, and returns what stood there. A name that is held back nowhere is an error, at the end.
func (r *Request) acceptSettings(in *Configuring) iter.Seq2[Configured, error] {
	return func(yield func(Configured, error) bool) {
		places, err := r.heldPlaces(in)
		if err != nil {
			yield(Configured{}, err)
			return
		}
		taken, left := map[string]bool{}, map[string]bool{}
		for _, p := range places {
			set := settings.Accept(p.have, in.Names...)
			for name, value := range settings.Held(p.have) {
				if _, ok := set[name]; ok {
					p.Settings.Settings[name], taken[name] = value, true
				}
			}
			if len(set) == 0 {
				continue
			}
			if !in.DryRun.DryRun {
				if p.Done, err = p.set(set); err == nil {
					p.Operation = p.Done.Operation
				}
			}
			if !yield(p.Configured, err) || err != nil {
				return
			}
		}
		for _, name := range in.Names {
			if !taken[name] {
				yield(Configured{}, base.NotFound("setting that is held back", name))
				return
			}
		}
		for _, p := range places {
			for name := range settings.Held(p.have) {
				if !taken[name] && len(in.Names) == 0 {
					left[name] = true
				}
			}
		}
		in.Left = slices.Sorted(maps.Keys(left))
	}
}
