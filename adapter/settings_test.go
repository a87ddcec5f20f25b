package adapter

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

var everything = &Rules{Provider: OpenAI, Parameters: []string{Temperature, TopP, MaxTokens, Stop, ThinkingKey, ResponseFormat, ToolChoice, ParallelCalls}}

func read(t *testing.T, settings string) (*Settings, error) {
	t.Helper()
	var from map[string]json.RawMessage
	if err := json.Unmarshal([]byte(settings), &from); err != nil {
		t.Fatal(err)
	}
	return readSettings(from, everything)
}

func TestSettings(t *testing.T) {
	s, err := read(t, `{"model":"gpt-5","temperature":0.5,"top_p":null,"max_tokens":10,"stop":"END","thinking":2000,"cache":false,"cache.ttl":"1h","tool_choice":"any",
		"response_format":{"type":"json_schema","json_schema":{"name":"a b","schema":{ "type":"object" }}},"openai.seed":7,"openai.metadata":{"a":"b"},"gemini.safetySettings":[],
		"mode":"plan","budget":1,"prune.keep":2,"compact.model":"x"}`)
	if err != nil {
		t.Fatal(err)
	}
	if *s.Temperature != 0.5 || s.TopP != nil || s.MaxTokens != 10 || s.Stop[0] != "END" || s.Thinking.Tokens != 2000 || Effort(s.Thinking) != "medium" || s.Cache || s.TTL != "1h" {
		t.Errorf("%+v", s)
	}
	if s.Choice.Mode != "required" || string(s.Format.Schema) != `{"type":"object"}` || !strings.HasPrefix(s.Format.Name, "a_b_") {
		t.Errorf("%+v %+v", s.Choice, s.Format)
	}
	if got := fmt.Sprintf("%s", s.Extra); got != `map[metadata:{"a":"b"} seed:7]` {
		t.Errorf("goes through: %s", got)
	}
}

func TestSettingsRefused(t *testing.T) {
	for settings, key := range map[string]string{
		`{"model":"m","temprature":1}`:                           "temprature",
		`{"model":"m","openai":1}`:                               "openai",
		`{"model":"m","temperature":"hot"}`:                      "temperature",
		`{"model":"m","temperature":-1}`:                         "temperature",
		`{"model":"m","max_tokens":0}`:                           "max_tokens",
		`{"model":"m","max_tokens":1.5}`:                         "max_tokens",
		`{"model":"m","stop":[1]}`:                               "stop",
		`{"model":"m","thinking":"hard"}`:                        "thinking",
		`{"model":"m","thinking":-1}`:                            "thinking",
		`{"model":"m","response_format":"xml"}`:                  "response_format",
		`{"model":"m","response_format":{"type":"json_schema"}}`: "response_format",
		`{"model":"m","tool_choice":7}`:                          "tool_choice",
		`{"model":"m","tool_choice":{"type":"function"}}`:        "tool_choice",
		`{"model":"m","cache.ttl":"2h"}`:                         "cache.ttl",
		`{"model":"m","cache":"yes"}`:                            "cache",
		`{"model":7}`:                                            "model",
		`{"model":"m","openai.messages":[]}`:                     "openai.messages",
		`{"model":"m","openai.model":"x"}`:                       "openai.model",
	} {
		_, err := read(t, settings)
		var refused *SettingError
		if !errors.As(err, &refused) || refused.Key != key || !errors.Is(err, ErrSetting) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", settings, err)
		}
	}
	for _, settings := range []string{`{}`, `{"model":" "}`, `{"model":null}`} {
		if _, err := read(t, settings); !errors.Is(err, ErrNoModel) {
			t.Errorf("%s: %v", settings, err)
		}
	}
}

func TestApply(t *testing.T) {
	s, err := read(t, `{"model":"m","openai.text":{"b":2},"openai.seed":7,"openai.temperature":0,"openai.tools":[{"type":"custom"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Apply(json.RawMessage(`{"temperature":1,"text":{"a":"x"}}`), "text")
	if err != nil || string(got) != `{"temperature":0,"text":{"a":"x","b":2},"seed":7}` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := s.Apply(json.RawMessage(`[]`)); err == nil {
		t.Error("fields that are no object are taken")
	}
	if tools := s.ExtraTools(); len(tools) != 1 || string(tools[0]) != `{"type":"custom"}` {
		t.Errorf("%s", tools)
	}
}
