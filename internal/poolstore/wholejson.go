package poolstore

import (
	"encoding/json"

	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/pool"
)

// MakeWhole makes all JSON values of a message whole, as jsontree.Whole does, and returns how many places it changed. Messages from outside pass it before
// they are stored, since strict readers may get them later.
func MakeWhole(m *pool.Message) int {
	changed := 0
	whole := func(raw *json.RawMessage) {
		var n int
		*raw, n = jsontree.Whole(*raw)
		changed += n
	}
	values := func(named map[string]json.RawMessage) {
		for name, raw := range named {
			if fixed, n := jsontree.Whole(raw); n > 0 {
				named[name] = fixed
				changed += n
			}
		}
	}
	parts := func(list []pool.Part) {
		for i := range list {
			whole(&list[i].Raw)
		}
	}
	parts(m.Content)
	for i := range m.Calls {
		whole(&m.Calls[i].Arguments)
		whole(&m.Calls[i].Raw)
	}
	if m.Result != nil {
		whole(&m.Result.JSON)
		parts(m.Result.Parts)
	}
	whole(&m.Meta.Usage)
	values(m.AppData)
	values(m.Meta.ProviderData)
	return changed
}
