package view

import (
	"sort"

	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/kv"
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
	return []kv.Key{kv.In(record.ToolBucket, kv.Prefix(make([]byte, len(id)))), kv.In(record.ToolBucket, kv.Prefix(id[:]))}
}

// KeptTools returns the records of a context's and the store's tools.
func KeptTools(tx kv.Tx, id pool.ID) ([]record.KeptTool, error) {
	byName := map[string]record.KeptTool{}
	for _, scope := range []pool.ID{{}, id} {
		err := tx.Scan(record.ToolBucket, kv.Prefix(scope[:]), func(key, value []byte) error {
			t := record.KeptTool{Store: scope == pool.ID{}}
			if err := record.DecMode.Unmarshal(value, &t.Tool); err != nil {
				return record.Damaged("the tool %q: %v", key[16:], err)
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
