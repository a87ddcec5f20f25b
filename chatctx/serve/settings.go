package serve

import (
	"encoding/json"
	"os"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/settings"
	"github.com/chatctx/chatctx/internal/contract"
)

func settingMethods() []*method {
	const in, at = "/contexts/{context}", "/contexts/{context}/branches/{branch}"
	return []*method{
		define("prompts.set", "POST "+at+"/prompts", Write, "set the prompts of a branch; one left out stays, and an empty one is removed", setPrompts),
		define("settings.branch", "GET "+at+"/settings", Read, "get the settings in force on a branch", getBranchSettings),
		define("settings.context", "GET "+in+"/settings", Read, "get a conversation's own settings", getContextSettings),
		define("settings.store", "GET /settings", Read, "get the store's defaults", getStoreSettings),
		define("settings.table", "GET /settings/table", Read, "list all settings that exist: their names, values, defaults and meanings", getSettingTable),
		define("settings.setBranch", "POST "+at+"/settings", Write, "change settings of a branch; null removes one. Settings that name hosts, keys or folders need admin", setBranchSettings),
		define("settings.setContext", "POST "+in+"/settings", Write, "change settings of a conversation, in the same way as those of a branch", setContextSettings),
		define("settings.setStore", "POST /settings", Admin, "change the store's defaults", setStoreSettings),
	}
}

// maySet refuses settings that could say where a request goes, which key goes with it, or what may run, unless the caller has the scope admin.
func (r *request) maySet(set map[string]json.RawMessage) error {
	for name := range set {
		if s, ok := settings.Lookup(name); !ok || !s.Harmless {
			if err := r.need(Admin); err != nil {
				return &refusal{403, "forbidden", "the setting " + name + " needs the scope admin"}
			}
		}
	}
	return nil
}

type promptsParams struct {
	change
	System *string `json:"system,omitempty" doc:"the new system prompt"`
	Prompt *string `json:"prompt,omitempty" doc:"the new user prompt"`
}

func setPrompts(r *request, in *promptsParams) (contract.Where, error) {
	if in.System == nil && in.Prompt == nil {
		return contract.Where{}, chatctx.Invalid("prompts.set needs system or prompt")
	}
	return where(r.commit(in.change, func(b *chatctx.Batch) {
		if in.System != nil {
			b.SetSystem(*in.System)
		}
		if in.Prompt != nil {
			b.SetPrompt(*in.Prompt)
		}
	}))
}

func getBranchSettings(r *request, in *target) (contract.Settings, error) {
	c, _, err := r.snapshot(*in)
	if err != nil {
		return contract.Settings{}, err
	}
	s, err := c.Effective(r.ctx, in.Branch)
	if err != nil {
		return contract.Settings{}, err
	}
	ignored, err := c.Ignored(r.ctx, in.Branch)
	return contract.Settings{Context: &c.ID, Branch: in.Branch, Settings: settings.WithEnv(s, os.Getenv), Ignored: contract.Texts(ignored)}, err
}

func getContextSettings(r *request, in *conversation) (contract.Settings, error) {
	c, info, err := r.conversation(in.Context)
	if err != nil {
		return contract.Settings{}, err
	}
	return contract.Settings{Context: &c.ID, Settings: contract.Values(info.Settings), Ignored: contract.Texts(settings.Ignored(info.Settings))}, nil
}

func getStoreSettings(r *request, _ *struct{}) (contract.Settings, error) {
	s, err := r.store.Settings(r.ctx)
	return contract.Settings{Settings: contract.Values(s), Ignored: contract.Texts(settings.Ignored(s))}, err
}

func getSettingTable(*request, *struct{}) (contract.SettingTable, error) {
	return contract.SettingTableOf(), nil
}

type branchSettings struct {
	change
	Settings map[string]json.RawMessage `json:"settings" doc:"names and values; null removes a setting"`
}

func setBranchSettings(r *request, in *branchSettings) (contract.Settings, error) {
	return r.set(in.Settings, func() (*chatctx.Committed, error) {
		return r.commit(in.change, func(b *chatctx.Batch) { b.SetSettings(in.Settings) })
	})
}

type contextSettings struct {
	contextChange
	Settings map[string]json.RawMessage `json:"settings" doc:"names and values; null removes a setting"`
}

func setContextSettings(r *request, in *contextSettings) (contract.Settings, error) {
	return r.set(in.Settings, func() (*chatctx.Committed, error) {
		done, err := r.onContext(in.Context, func(b *chatctx.Batch) { b.SetContextSettings(in.Settings) })
		if done != nil {
			done.Branch = ""
		}
		return done, err
	})
}

type storeSettings struct {
	keyed
	Settings map[string]json.RawMessage `json:"settings" doc:"names and values; null removes a setting"`
}

func setStoreSettings(r *request, in *storeSettings) (contract.Settings, error) {
	return r.set(in.Settings, func() (*chatctx.Committed, error) { return r.store.SetSettings(r.ctx, in.Settings) })
}

// set sets settings if the caller may.
func (r *request) set(set map[string]json.RawMessage, do func() (*chatctx.Committed, error)) (contract.Settings, error) {
	if err := r.maySet(set); err != nil {
		return contract.Settings{}, err
	}
	done, err := do()
	if err != nil {
		return contract.Settings{}, err
	}
	return contract.Settings{Operation: done.Operation, Context: contract.ID(done.Context), Branch: done.Branch, Settings: set}, nil
}
