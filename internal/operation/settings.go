package operation

import (
	"encoding/json"
	"os"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/settings"
	"github.com/chatctx/chatctx/internal/contract"
)

func init() { Register(Group{Heading: "Prompts and settings", Of: settingOperations}) }

func settingOperations() []*Operation {
	const in, at = "/contexts/{context}", "/contexts/{context}/branches/{branch}"
	return []*Operation{
		Define("prompts.set", "POST "+at+"/prompts", Write, "set the prompts of a branch; one left out stays, and an empty one is removed", setPrompts),
		Define("settings.branch", "GET "+at+"/settings", Read, "get the settings in force on a branch", getBranchSettings),
		Define("settings.context", "GET "+in+"/settings", Read, "get a conversation's own settings", getContextSettings),
		Define("settings.store", "GET /settings", Read, "get the store's defaults", getStoreSettings),
		Define("settings.table", "GET /settings/table", Read, "list all settings that exist: their names, values, defaults and meanings", getSettingTable),
		Define("settings.setBranch", "POST "+at+"/settings", Write, "change settings of a branch; null removes one. Settings that name hosts, keys or folders need admin", setBranchSettings),
		Define("settings.setContext", "POST "+in+"/settings", Write, "change settings of a conversation, in the same way as those of a branch", setContextSettings),
		Define("settings.setStore", "POST /settings", Admin, "change the store's defaults", setStoreSettings),
	}
}

// maySet refuses settings that could say where a request goes, which key goes with it, or what may run, unless the caller has the scope admin.
func (r *Request) maySet(set map[string]json.RawMessage) error {
	for name := range set {
		if s, ok := settings.Lookup(name); !ok || !s.Harmless {
			if err := r.need(Admin); err != nil {
				return &Refusal{403, "forbidden", "the setting " + name + " needs the scope admin"}
			}
		}
	}
	return nil
}

type promptsParams struct {
	Change
	System *string `json:"system,omitempty" doc:"the new system prompt"`
	Prompt *string `json:"prompt,omitempty" doc:"the new user prompt"`
}

func setPrompts(r *Request, in *promptsParams) (contract.Where, error) {
	if in.System == nil && in.Prompt == nil {
		return contract.Where{}, chatctx.Invalid("prompts.set needs system or prompt")
	}
	return where(r.commit(in.Change, func(b *chatctx.Batch) {
		if in.System != nil {
			b.SetSystem(*in.System)
		}
		if in.Prompt != nil {
			b.SetPrompt(*in.Prompt)
		}
	}))
}

func getBranchSettings(r *Request, in *Target) (contract.Settings, error) {
	c, _, err := r.snapshot(*in)
	if err != nil {
		return contract.Settings{}, err
	}
	s, err := c.Effective(r.Ctx, in.Branch)
	if err != nil {
		return contract.Settings{}, err
	}
	ignored, err := c.Ignored(r.Ctx, in.Branch)
	return contract.Settings{Context: &c.ID, Branch: in.Branch, Settings: settings.WithEnv(s, os.Getenv), Ignored: contract.Texts(ignored)}, err
}

func getContextSettings(r *Request, in *Conversation) (contract.Settings, error) {
	c, info, err := r.conversation(in.Context)
	if err != nil {
		return contract.Settings{}, err
	}
	return contract.Settings{Context: &c.ID, Settings: contract.Values(info.Settings), Ignored: contract.Texts(settings.Ignored(info.Settings))}, nil
}

func getStoreSettings(r *Request, _ *struct{}) (contract.Settings, error) {
	s, err := r.Store.Settings(r.Ctx)
	return contract.Settings{Settings: contract.Values(s), Ignored: contract.Texts(settings.Ignored(s))}, err
}

func getSettingTable(*Request, *struct{}) (contract.SettingTable, error) {
	return contract.SettingTableOf(), nil
}

type branchSettings struct {
	Change
	Settings map[string]json.RawMessage `json:"settings" doc:"names and values; null removes a setting"`
}

func setBranchSettings(r *Request, in *branchSettings) (contract.Settings, error) {
	return r.set(in.Settings, func() (*chatctx.Committed, error) {
		return r.commit(in.Change, func(b *chatctx.Batch) { b.SetSettings(in.Settings) })
	})
}

type contextSettings struct {
	ContextChange
	Settings map[string]json.RawMessage `json:"settings" doc:"names and values; null removes a setting"`
}

func setContextSettings(r *Request, in *contextSettings) (contract.Settings, error) {
	return r.set(in.Settings, func() (*chatctx.Committed, error) {
		done, err := r.onContext(in.Context, func(b *chatctx.Batch) { b.SetContextSettings(in.Settings) })
		if done != nil {
			done.Branch = ""
		}
		return done, err
	})
}

type storeSettings struct {
	Keyed
	Settings map[string]json.RawMessage `json:"settings" doc:"names and values; null removes a setting"`
}

func setStoreSettings(r *Request, in *storeSettings) (contract.Settings, error) {
	return r.set(in.Settings, func() (*chatctx.Committed, error) { return r.Store.SetSettings(r.Ctx, in.Settings) })
}

// set sets settings if the caller may.
func (r *Request) set(set map[string]json.RawMessage, do func() (*chatctx.Committed, error)) (contract.Settings, error) {
	if err := r.maySet(set); err != nil {
		return contract.Settings{}, err
	}
	done, err := do()
	if err != nil {
		return contract.Settings{}, err
	}
	return contract.Settings{Operation: done.Operation, Context: contract.ID(done.Context), Branch: done.Branch, Settings: set}, nil
}
