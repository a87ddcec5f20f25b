package operation

import (
	"encoding/json"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/settings"
)

func init() { Register(Group{Heading: "Prompts and settings", Of: settingOperations}) }

const configHelp = "KEY= removes a setting; KEY alone shows it. A text is taken literally, unless it is a quoted JSON string; other values are JSON. The nearest place wins: a flag of the command, the branch, the conversation (--all-branches), the store (--default), the environment (CHATCTX_ and the name in capitals, _ for a dot), the config file (--file): chatctx/config in the folder for your configuration, or the file that CHATCTX_CONFIG names. If a place has its own base_url or another provider, the address of every wider place no longer counts, nor do the settings there that are marked with its address; a key_env counts only with the base_url of its own place. Without arguments config shows the settings in force, or with --all or --default those of that place."

func settingOperations() []*Operation {
	const in, at = "/contexts/{context}", "/contexts/{context}/branches/{branch}"
	return []*Operation{
		Define("prompts.set", "POST "+at+"/prompts", Write, "set the prompts of a branch; one left out stays, and an empty one is removed", setPrompts),
		Define("prompts.system", "POST", Write, "show or set the branch's system prompt", prompting(func(b *record.BranchInfo) string { return b.System }, (*chatctx.Batch).SetSystem)).
			As("system", `chatctx system "Answer in French."`),
		Define("prompts.user", "POST", Write, "show or set the branch's user prompt", prompting(func(b *record.BranchInfo) string { return b.Prompt }, (*chatctx.Batch).SetPrompt)).
			As("prompt", "chatctx prompt - < style.txt"),
		Define("settings.config", "POST", Write, "show or set the branch's settings", configure).With(configHelp).
			As("config", "chatctx config model=gpt-4o temperature=0.2\nchatctx config --all-branches mode=plan\nchatctx config --default model=claude-sonnet-4-5"),
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
		return contract.Where{}, base.Invalid("prompts.set needs system or prompt")
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
	v, _, err := r.settingsOf(InBranch, *in)
	return v, err
}

func getContextSettings(r *Request, in *Conversation) (contract.Settings, error) {
	v, _, err := r.settingsOf(InContext, Target{Context: in.Context})
	return v, err
}

func getStoreSettings(r *Request, _ *struct{}) (contract.Settings, error) {
	v, _, err := r.settingsOf(InStore, Target{})
	return v, err
}

func getSettingTable(*Request, *struct{}) (contract.SettingTable, error) {
	return contract.SettingTableOf(), nil
}

type branchSettings struct {
	Change
	Settings map[string]json.RawMessage `json:"settings" doc:"names and values; null removes a setting"`
}

func setBranchSettings(r *Request, in *branchSettings) (contract.Settings, error) {
	return r.setIn(InBranch, in.Change, in.Settings)
}

type contextSettings struct {
	ContextChange
	Settings map[string]json.RawMessage `json:"settings" doc:"names and values; null removes a setting"`
}

func setContextSettings(r *Request, in *contextSettings) (contract.Settings, error) {
	return r.setIn(InContext, Change{Target: Target{Context: in.Context}}, in.Settings)
}

type storeSettings struct {
	Keyed
	Settings map[string]json.RawMessage `json:"settings" doc:"names and values; null removes a setting"`
}

func setStoreSettings(r *Request, in *storeSettings) (contract.Settings, error) {
	return r.setIn(InStore, Change{}, in.Settings)
}
