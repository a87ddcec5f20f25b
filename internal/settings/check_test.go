package settings

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for _, test := range []struct{ name, value, want string }{
		{"budget", "1000", ""}, {"budget", `"off"`, ""}, {"budget", "-1", "a whole number from 0 to 1000000000, or off, not -1"}, {"budget", "1.5", "whole number"}, {"budget", "null", ""},
		{"compact.at", `"80 %"`, ""}, {"compact.at", "0.8", ""}, {"compact.at", "80", "0 % to 100 %, not 80"}, {"compact.at", "2", "a share from 0 to 1, or 0 % to 100 %, not 2"}, {"compact.at", "1", ""}, {"compact.at", `"50"`, "a share"}, {"headroom", "0.95", "0 % to 90 %"}, {"compact.at", "101", "a share"}, {"compact.at", `"NaN"`, "a share"},
		{"squeeze", "true", ""}, {"squeeze", `"true"`, "true or false"}, {"cache.ttl", `"1h"`, ""}, {"cache.ttl", `"2h"`, "one of 5m, 1h"},
		{"timeout", `"90s"`, ""}, {"timeout", "90", "a time such as"}, {"timeout", `"-1s"`, "a time such as"}, {"temperature", "0", ""}, {"temperature", "1e400", "number"},
		{"max_tokens", "0", "from 1 to"}, {"budget", "1000000001", "to 1000000000"}, {"keep_blocks", `"off"`, "not \"off\""}, {"top_p", "1.5", "from 0 to 1"}, {"thinking", "2000", ""}, {"thinking", `"hard"`, "off, low, medium, high, or number"}, {"stop", "[1]", "list of texts"}, {"model", `"m"`, ""}, {"model", "4", "text"}, {"stop", `["a"]`, ""},
		{"base_url", `"https://host/v1"`, ""}, {"base_url", `"http://127.0.0.1:1"`, ""}, {"base_url", `"notaurl"`, "an address such as"}, {"compact.base_url", `"ftp://x"`, "an address such as"},
		{"base_url", `"http://"`, "an address such as"}, {"embedding.base_url", "4", "an address such as"},
		{"openai.seed", "7", ""}, {"anthropic.", "7", "there is no setting"}, {"app.mine", `{"a":1}`, ""}, {"nobody.seed", "7", "there is no setting"},
		{"anthropic.beta", "5", "text, or list of texts, not 5"}, {"anthropic.beta", `["a",5]`, "list of texts"}, {"anthropic.betas", `["a"]`, ""}, {"anthropic.beta", `"a,b"`, ""}, {"anthropic.beta", "{}", "list of texts"}, {"anthropic.betax", "5", ""},
		{"response_format", "7", "takes text, json or {"}, {"response_format", `"xml"`, "takes text, json or {"}, {"response_format", `"json"`, ""}, {"response_format", `{"type":"json_object"}`, ""}, {"response_format", `{"type":7}`, "takes text"}, {"response_format", `[]`, "takes text"},
		{"response_format", `{"type":"json_schema"}`, "takes text"}, {"response_format", `{"type":"json_schema","schema":{}}`, ""}, {"response_format", `{"type":"json_schema","json_schema":{"schema":{}}}`, ""}, {"response_format", `{"type":"json_schema","json_schema":{"schema":5}}`, "takes text"}, {"response_format", `"json_schema"`, "takes text"},
		{"tool_choice", "5", "takes auto, none, required or a tool's name, not 5"}, {"tool_choice", `""`, "takes auto"}, {"tool_choice", `"read"`, ""}, {"tool_choice", `{"type":"any"}`, ""}, {"tool_choice", `{"type":"function"}`, "takes auto"}, {"tool_choice", `{"type":"function","function":{"name":"x"}}`, ""}, {"tool_choice", `{"type":"tool","name":"x"}`, ""}, {"tool_choice", `[]`, "takes auto"}, {"tool_choice", `{"function":5}`, "takes auto"},
		{"openai.messages", "[]", "no effect: the request has this from the branch"}, {"gemini.model", `"x"`, "from the branch"}, {"anthropic.system", `"x"`, "from the branch"}, {"app.model", `"x"`, ""}, {"openai.model", "null", ""},
		{"budgt", "1", "did you mean budget?"}, {"tempurature", "1", "did you mean temperature?"}, {"compact.att", "1", "did you mean compact.at?"},
		{"prune.polcy", "1", "did you mean prune.policy?"}, {"window", "1", `there is no setting "window"`}, {"budegt", "1", "did you mean budget?"}, {"gone", "null", ""},
	} {
		err := Check(test.name, json.RawMessage(test.value))
		var e *Error
		if test.want == "" && err != nil || test.want != "" && (!errors.As(err, &e) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s=%s: %v, want %q", test.name, test.value, err, test.want)
		}
	}
}

// TestParse: a text is taken as typed, unless it is a quoted JSON string.
func TestParse(t *testing.T) {
	for _, test := range []struct{ name, typed, want string }{
		{"model", "4", `"4"`}, {"model", "true", `"true"`}, {"model", `"4"`, `"4"`}, {"model", `{"a":1}`, `"{\"a\":1}"`}, {"compact.system", "null", `"null"`}, {"mode", `"half`, `"\"half"`},
		{"budget", " 5 ", "5"}, {"budget", "off", `"off"`}, {"compact.at", "80 %", `"80 %"`}, {"stop", `[ "a", "b" ]`, `["a","b"]`}, {"stop", "END", `"END"`}, {"app.x", "4", "4"}, {"timeout", "5m", `"5m"`},
	} {
		if got := string(Parse(test.name, test.typed)); got != test.want {
			t.Errorf("%s=%s is %s, want %s", test.name, test.typed, got, test.want)
		}
	}
}

func TestFromEnv(t *testing.T) {
	env := map[string]string{"CHATCTX_BUDGET": "1000", "CHATCTX_COMPACT_AT": "50 %", "CHATCTX_MODEL": "4", "CHATCTX_STORE": "x"}
	got, wrong := FromEnv(func(name string) string { return env[name] })
	if wrong != nil || text(got) != "budget=1000 compact.at=50 % model=4" {
		t.Errorf("%v %v", text(got), wrong)
	}
	env["CHATCTX_KEEP_BLOCKS"], env["CHATCTX_COMPACT_AT"] = "many", "50"
	got, wrong = FromEnv(func(name string) string { return env[name] })
	if len(wrong) != 2 || !strings.Contains(wrong[0].Error(), "CHATCTX_KEEP_BLOCKS takes a whole number") || text(got) != "budget=1000 model=4" {
		t.Errorf("%v %v", text(got), wrong)
	}
}

// TestRowsAreWhole: each default is a valid value of its setting, and each word too; no name appears twice.
func TestRowsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for i := range rows() {
		s := &rows()[i]
		if seen[s.Name] {
			t.Errorf("%s stands twice", s.Name)
		}
		seen[s.Name] = true
		values := strings.Fields(s.Words)
		if s.Default != "" && s.Name != "budget" {
			values = append(values, s.Default)
		}
		for _, v := range values {
			if err := Check(s.Name, Parse(s.Name, v)); err != nil {
				t.Errorf("%v", err)
			}
		}
		if (s.Type == Word || s.Type == Level) != (s.Words != "") || s.Does == "" {
			t.Errorf("the row of %s is not whole", s.Name)
		}
	}
}

// TestUnknownIsNotInForce: settings that are not in the table, and invalid values from a file, are kept but not in force.
func TestUnknownIsNotInForce(t *testing.T) {
	place := of("model=m frob=1")
	if got := text(InForce(place)); got != "model=m" {
		t.Errorf("in force: %s", got)
	}
	place["budget"], place["base_url"] = json.RawMessage(`"many"`), json.RawMessage(`"nowhere"`)
	if got := text(InForce(of("budget=5 base_url=http://h provider=openai"), place)); got != "base_url=http://h budget=5 model=m provider=openai" {
		t.Errorf("in force: %s", got)
	}
	if got := Ignored(of("model=m frob=1 held.x=1 app.a=1 budget=-1")); len(got) != 2 || !strings.Contains(got[0].Error(), "budget takes") || !strings.Contains(got[1].Error(), `no setting "frob"`) {
		t.Errorf("ignored: %v", got)
	}
	if out, held := Hold(of("budget=many keep_blocks=3")); text(out) != "held.budget=many keep_blocks=3" || len(held) != 1 {
		t.Errorf("%s, held %v", text(out), held)
	}
}
