package view

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// ToolsFor returns the tools of a context by name, each tool of an MCP server by itself. The context's own tools take precedence over the store's.
func ToolsFor(tx kv.Tx, id pool.ID) ([]record.Tool, error) {
	kept, err := KeptTools(tx, id)
	if err != nil {
		return nil, err
	}
	tools := make([]record.Tool, 0, len(kept))
	for _, t := range kept {
		tools = append(tools, offers(t.Tool)...)
	}
	return tools, nil
}

// ToolsKeys names what KeptTools reads.
func ToolsKeys(id pool.ID) []kv.Key {
	return []kv.Key{kv.In(base.ToolBucket, kv.Prefix(make([]byte, len(id)))), kv.In(base.ToolBucket, kv.Prefix(id[:]))}
}

// KeptTools returns the records of a context's and the store's tools.
func KeptTools(tx kv.Tx, id pool.ID) ([]record.KeptTool, error) {
	byName := map[string]record.KeptTool{}
	for _, scope := range []pool.ID{{}, id} {
		err := tx.Scan(base.ToolBucket, kv.Prefix(scope[:]), func(key, value []byte) error {
			t := record.KeptTool{Store: scope == pool.ID{}}
			if err := stored.Unmarshal(value, &t.Tool); err != nil {
				return base.Damaged("the tool %q: %v", key[16:], err)
			}
			byName[t.Name] = t
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	tools := make([]record.KeptTool, 0, len(byName))
	for _, t := range byName {
		tools = append(tools, t)
	}
	sort.Slice(tools, func(i, j int) bool { return tools[i].Name < tools[j].Name })
	return tools, nil
}

// ToolNamed returns the tool of a context that has a name, nil if there is none: of several, the one that ToolsFor names last. It reads by key.
func ToolNamed(tx kv.Tx, id pool.ID, name string) (*record.Tool, error) {
	for end := len(name); end > 0; end = strings.LastIndex(name[:end], remoteMark) {
		t, err := keptTool(tx, id, name[:end])
		if err != nil {
			return nil, err
		}
		if t == nil {
			continue
		}
		for _, one := range offers(*t) {
			if one.Name == name {
				return &one, nil
			}
		}
	}
	return nil, nil
}

// keptTool returns the record of a context's tool, or else of the store's, nil if neither has one.
func keptTool(tx kv.Tx, id pool.ID, name string) (*record.Tool, error) {
	for _, scope := range []pool.ID{id, {}} {
		raw, err := tx.Get(base.ToolBucket, base.Under(scope, []byte(name)...))
		if err != nil {
			return nil, err
		}
		if raw == nil {
			continue
		}
		t := &record.Tool{}
		if err := stored.Unmarshal(raw, t); err != nil {
			return nil, base.Damaged("the tool %q: %v", name, err)
		}
		return t, nil
	}
	return nil, nil
}

// RunsNow returns what runs the calls of a tool on a branch now, and the tool, nil if the store has none.
func RunsNow(tx kv.Tx, id pool.ID, rec *base.ContextRecord, b *branch.Branch, name string) (*record.Runs, *record.Tool, error) {
	t, err := ToolNamed(tx, id, name)
	if t == nil || err != nil {
		return record.RunsOf(nil, ""), nil, err
	}
	own, err := Effective(tx, rec, b)
	return record.RunsOf(t, folderOf(own)), t, err
}

// folderOf returns the folder of the setting calls.folder, "" if it names none: nobody knows where a relative one would begin.
func folderOf(own map[string]json.RawMessage) string {
	if dir := settings.Values(settings.WithEnv(own, os.Getenv)).Text("calls.folder"); filepath.IsAbs(dir) {
		return dir
	}
	return ""
}

// remoteMark stands between the names of an MCP server and its tool in the name that a model sees.
const remoteMark = "__"

// offers returns the tools that a record stands for: itself, or those of the MCP server that it names.
func offers(t record.Tool) []record.Tool {
	if !t.MCP {
		return []record.Tool{t}
	}
	var out []record.Tool
	for _, r := range t.Remotes {
		one := t
		one.Name, one.Description, one.Schema, one.Remotes, one.Remote = t.Name+remoteMark+r.Name, r.Description, r.Schema, nil, r.Name
		out = append(out, one)
	}
	return out
}

// OfferedTools returns the tools that a draft of the context has, each tool of an MCP server by itself.
func OfferedTools(ctx context.Context, s *base.Store, context pool.ID) ([]record.Tool, error) {
	var out []record.Tool
	err := s.DB.View(ctx, func(tx kv.Tx) (err error) {
		out, err = ToolsFor(tx, context)
		return err
	})
	return out, err
}
