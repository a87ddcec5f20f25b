package adapter

import (
	"encoding/json"

	"github.com/chatctx/chatctx/adapter/internal/out"
)

// Function is a tool in a body: a definition or, if Raw is not nil, a complete tool from the settings.
type Function struct {
	Tool
	Raw json.RawMessage
}

// Functions returns the conversation's tools, then those of the settings.
func (c *Conversation) Functions(s *Settings) []Function {
	var list []Function
	for _, t := range c.Tools {
		list = append(list, Function{Tool: t})
	}
	for _, raw := range s.ExtraTools() {
		list = append(list, Function{Raw: raw})
	}
	return list
}

// WriteFunction writes a tool in the form of OpenAI's Chat Completions and of the APIs modelled on it.
func WriteFunction(j *out.JSON, f *Function) {
	if f.Raw != nil {
		j.Raw(f.Raw)
		return
	}
	j.Open('{')
	j.Text("type", "function")
	j.Key("function")
	j.Open('{')
	f.Write(j, "parameters")
	j.Close('}')
	j.Close('}')
}

// Write writes the members of a definition: name, description, and the schema under the provider's name for it.
func (t *Tool) Write(j *out.JSON, schema string) {
	j.Text("name", t.Name)
	if t.Description != "" {
		j.Text("description", t.Description)
	}
	j.Value(schema, t.Schema)
}
