package serve

import (
	"maps"

	"github.com/chatctx/chatctx/pool"
)

// The schemas of messages. Their JSON is written and read by package pool, field by field, and not from a struct's tags.
var (
	aText, aNumber, aBool = schema{"type": "string"}, schema{"type": "integer"}, schema{"type": "boolean"}
	textOrNull            = schema{"type": []any{"string", "null"}}
	numberOrNull          = schema{"type": []any{"integer", "null"}}
	timeOrNull            = schema{"type": []any{"string", "null"}, "format": "date-time"}
	idOrNull              = schema{"type": []any{"string", "null"}, "format": "uuid"}
	anyObject             = schema{"type": "object"}
	someParts             = schema{"type": "array", "items": schema{"$ref": "#/components/schemas/Part"}}
	outcomes              = oneOf(pool.WasRefused, pool.WasFiltered, pool.CutShort, pool.LostCall, pool.BrokenOff, pool.Empty)
)

// messageSchemas are the components that messages are made of.
func messageSchemas() map[string]any {
	all := map[string]any{"Message": shownMessage(), "NewMessage": newMessage()}
	rest := schema{"provider": aText, "model": aText, "native": schema{}}
	part := func(name string, types []string, own schema, required ...string) any {
		maps.Copy(own, rest)
		own["type"] = oneOf(types...)
		all[name] = objectOf(own, append([]string{"type"}, required...))
		return schema{"$ref": "#/components/schemas/" + name}
	}
	known := []string{pool.TextPart, pool.ImagePart, pool.DocumentPart, pool.ThinkingPart, pool.CallPart}
	media := part("MediaPart", known[1:3], schema{"media_type": aText, "name": aText, "data": withWords("the bytes, in base64", aText), "sha256": withWords("the artifact that has the bytes", aText), "size": aNumber, "url": aText})
	parts := []any{
		part("TextPart", known[:1], schema{"text": aText}, "text"), media, part("ThinkingPart", known[3:4], schema{"thinking": aText, "signature": aText, "redacted": aText}),
		part("CallPart", known[4:], schema{"id": withWords("of the call that stands here", aText)}, "id"),
	}
	all["OtherPart"] = withWords("a part of a type that is none of these, unchanged", schema{"type": "object", "properties": schema{"type": schema{"type": "string", "not": schema{"enum": known}}}, "required": []string{"type"}})
	all["Part"] = schema{"oneOf": append(parts, schema{"$ref": "#/components/schemas/OtherPart"}), "discriminator": schema{"propertyName": "type"}}
	return all
}

// messageFields returns the members of a message, with those of its place on a branch.
func messageFields() schema {
	return schema{
		"id": idOrNull, "parent_id": withWords("the message before it on the branch shown", idOrNull), "role": oneOf(pool.System, pool.User, pool.Assistant, pool.ToolRole), "content": someParts,
		"tool_calls":  schema{"type": "array", "items": objectOf(schema{"id": aText, "tool_name": aText, "arguments": withWords("those of the model", schema{}), "effective_arguments": withWords("those that an approval put in their place", schema{}), "changed_by": withWords("who approved them", objectOf(schema{"kind": aText, "name": aText, "claimed": aText, "said_by_file": aBool}, []string{"kind", "name"})), "approval_status": orNone(oneOf(pool.Pending, pool.Approved, pool.Denied, pool.Left, pool.Withdrawn)), "execution": orNone(oneOf(pool.NotRun, pool.Running, pool.Done, pool.Failed, pool.Uncertain)), "reason": aText}, []string{"id", "tool_name"})},
		"tool_result": objectOf(schema{"request_id": aText, "tool_name": aText, "result": schema{}, "text": aText, "parts": someParts, "is_error": aBool, "compact_summary": aText, "media_type": aText, "sha256": aText, "size": aNumber}, []string{"request_id"}),
		"metadata": objectOf(schema{
			"model_id": textOrNull, "provider_id": textOrNull, "input_tokens": withWords("the whole input, cached or not", numberOrNull), "output_tokens": numberOrNull, "cache_read_tokens": numberOrNull,
			"cache_write_tokens": numberOrNull, "reasoning_tokens": numberOrNull, "usage": schema{}, "finish_reason": textOrNull, "error": schema{}, "completed_at": timeOrNull, "provider_data": schema{},
		}, nil),
		"turn": withWords("u1, a1, u2 …", textOrNull), "position": withWords("from 1; null for one that waits in the queue", numberOrNull), "created_at": timeOrNull, "session": withWords("from 1", numberOrNull),
		"hidden": aBool, "unsent": withWords("it goes to no provider", aBool), "kind": aText, "unfinished": withWords("a reply that broke off", aBool), "outcome": withWords("how an answer ended that is not as it should be", outcomes), "copied_from": withWords("the original of a copy", idOrNull),
		"tags": schema{"type": "array", "items": aText}, "queued": withWords("it waits for its place until the running reply is done", aBool), "source": anyObject, "app_data": anyObject,
		"exact": anyObject, "extra": anyObject,
	}
}

// shownMessage returns the schema of a message in an answer.
func shownMessage() schema {
	return withWords("a message, with its place on a branch", objectOf(messageFields(), []string{"content", "created_at", "id", "metadata", "parent_id", "position", "role", "session", "turn"}))
}

// newMessage returns the schema of a message in a request: content may be a text alone.
func newMessage() schema {
	return withWords("a message: role, and content, tool_calls or tool_result are enough", objectOf(takenFields(), []string{"role"}))
}

func takenFields() schema {
	fields := maps.Clone(messageFields())
	fields["content"] = schema{"anyOf": []any{aText, someParts}}
	call, result := fields["tool_calls"].(schema)["items"].(schema), fields["tool_result"].(schema)
	fields["tool_calls"] = schema{"type": "array", "items": objectOf(call["properties"].(schema), []string{"tool_name"})}
	fields["tool_result"] = objectOf(result["properties"].(schema), nil)
	return fields
}

// orNone is the schema of a value, or null.
func orNone(s schema) schema { return schema{"anyOf": []any{s, schema{"type": "null"}}} }
