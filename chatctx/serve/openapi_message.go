package serve

import "maps"

// The schemas of messages. Their JSON is written and read by package pool, field by field, and not from a struct's tags.
var (
	aText, aNumber, aBool = schema{"type": "string"}, schema{"type": "integer"}, schema{"type": "boolean"}
	textOrNull            = schema{"type": []any{"string", "null"}}
	numberOrNull          = schema{"type": []any{"integer", "null"}}
	timeOrNull            = schema{"type": []any{"string", "null"}, "format": "date-time"}
	idOrNull              = schema{"type": []any{"string", "null"}, "format": "uuid"}
	anyObject             = schema{"type": "object"}
	someParts             = schema{"type": "array", "items": objectOf(schema{"type": aText}, []string{"type"})}
)

// messageFields returns the members of a message, with those of its place on a branch.
func messageFields() schema {
	return schema{
		"id": idOrNull, "parent_id": withWords("the message before it on the branch shown", idOrNull), "role": schema{"enum": []any{"system", "user", "assistant", "tool"}}, "content": someParts,
		"tool_calls":  schema{"type": "array", "items": objectOf(schema{"id": aText, "tool_name": aText, "arguments": withWords("those of the model", schema{}), "effective_arguments": withWords("those that an approval put in their place", schema{}), "changed_by": withWords("who approved them", objectOf(schema{"kind": aText, "name": aText, "claimed": aText, "said_by_file": aBool}, []string{"kind", "name"})), "approval_status": textOrNull, "execution": textOrNull, "reason": aText}, []string{"id", "tool_name"})},
		"tool_result": objectOf(schema{"request_id": aText, "tool_name": aText, "result": schema{}, "text": aText, "parts": someParts, "is_error": aBool, "compact_summary": aText, "media_type": aText, "sha256": aText, "size": aNumber}, []string{"request_id"}),
		"metadata": objectOf(schema{
			"model_id": textOrNull, "provider_id": textOrNull, "input_tokens": withWords("the whole input, cached or not", numberOrNull), "output_tokens": numberOrNull, "cache_read_tokens": numberOrNull,
			"cache_write_tokens": numberOrNull, "reasoning_tokens": numberOrNull, "usage": schema{}, "finish_reason": textOrNull, "error": schema{}, "completed_at": timeOrNull, "provider_data": schema{},
		}, nil),
		"turn": withWords("u1, a1, u2 …", textOrNull), "position": withWords("from 1; null for one that waits in the queue", numberOrNull), "created_at": timeOrNull, "session": withWords("from 1", numberOrNull),
		"hidden": aBool, "unsent": withWords("it goes to no provider", aBool), "kind": aText, "unfinished": withWords("a reply that broke off", aBool), "outcome": withWords("how an answer ended that is not as it should be: refused, filtered, cut_short, lost_call or empty", aText), "copied_from": withWords("the original of a copy", idOrNull),
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
	fields["tool_calls"], fields["tool_result"] = schema{"type": []any{"array", "null"}}, schema{"type": []any{"object", "null"}}
	return fields
}
