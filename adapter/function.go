package adapter

import (
	"encoding/json"

	"github.com/chatctx/chatctx/internal/provider/out"
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

// Append appends a tool in the form of OpenAI's Chat Completions and of the APIs modelled on it.
func (f *Function) Append(body []byte) []byte {
	if f.Raw != nil {
		return append(body, f.Raw...)
	}
	j := out.JSON(body)
	j.Open('{')
	j.Text("type", "function")
	j.Key("function")
	j.Open('{')
	j = f.AppendMembers(j, "parameters")
	j.Close('}')
	j.Close('}')
	return j
}

// AppendMembers appends the members of a definition, without braces: name, description, and the schema under the provider's name for it.
func (t *Tool) AppendMembers(body []byte, schema string) []byte {
	j := out.JSON(body)
	j.Text("name", t.Name)
	if t.Description != "" {
		j.Text("description", t.Description)
	}
	j.Value(schema, t.Schema)
	return j
}
