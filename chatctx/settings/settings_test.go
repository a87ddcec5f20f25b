package settings

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
)

func TestSettings(t *testing.T) {
	if names := Names(); !slices.Contains(names, "max_tokens") || slices.Contains(names, "nonsense") {
		t.Errorf("the names are %v", names)
	}
	if Does("max_tokens") == "" || Does("nonsense") != "" {
		t.Errorf("max_tokens: %q, nonsense: %q", Does("max_tokens"), Does("nonsense"))
	}
	if err := Check("max_tokens", Parse("max_tokens", "4000")); err != nil {
		t.Error(err)
	}
	for name, typed := range map[string]string{"max_tokens": "many", "nonsense": "1"} {
		if err := Check(name, Parse(name, typed)); !errors.Is(err, ErrSetting) {
			t.Errorf("%s=%s: %v", name, typed, err)
		}
	}
	got := InForce(map[string]json.RawMessage{"max_tokens": json.RawMessage("1"), "nonsense": json.RawMessage("1")}, map[string]json.RawMessage{"max_tokens": json.RawMessage("2")})
	if len(got) != 1 || string(got["max_tokens"]) != "2" {
		t.Errorf("in force are %s", got)
	}
}
