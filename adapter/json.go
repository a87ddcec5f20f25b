package adapter

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/chatctx/chatctx/internal/provider/out"
)

// cleanJSON returns JSON in its shortest form, without what no provider reads.
func cleanJSON(raw []byte) (json.RawMessage, bool) { return out.Clean(raw) }

// cleanObject is cleanJSON for an object.
func cleanObject(raw []byte) (json.RawMessage, bool) {
	clean, ok := out.Clean(raw)
	return clean, ok && len(clean) > 0 && clean[0] == '{'
}

var noArguments = json.RawMessage("{}")

// arguments returns a call's arguments as an object, and keeps what the model said, whatever it was. what says what was changed, "" if nothing.
func arguments(raw []byte) (object json.RawMessage, what string) {
	raw = bytes.TrimSpace(raw)
	if isNull(raw) {
		return noArguments, ""
	}
	clean, ok := out.Clean(raw)
	if ok && clean[0] == '{' {
		return clean, ""
	}
	var text string
	if ok && json.Unmarshal(clean, &text) == nil {
		if blank(text) {
			return noArguments, ""
		}
		if inner, ok := cleanObject([]byte(text)); ok {
			return inner, "arguments that were an object in a string were taken out of it"
		}
		return member("invalid_arguments", text), "arguments that are not JSON are sent as a text"
	}
	if ok {
		return append(append(json.RawMessage(`{"arguments":`), clean...), '}'), "arguments that are no object are sent in one"
	}
	return member("invalid_arguments", string(raw)), "arguments that are not JSON are sent as a text"
}

// member returns an object with one text.
func member(name, text string) json.RawMessage {
	var j out.JSON
	j.Open('{')
	j.Key(name)
	j.String(text)
	j.Close('}')
	return json.RawMessage(j)
}

// blank reports whether a text has no visible characters. Providers refuse such texts.
func blank(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsSpace(r) && !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r)
	}) < 0
}
