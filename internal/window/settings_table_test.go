package window

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/tokens"
)

// TestDefaultsAreThoseOfTheTable: the table's defaults are those in force.
func TestDefaultsAreThoseOfTheTable(t *testing.T) {
	set := map[string]json.RawMessage{}
	for _, s := range settings.All() {
		if s.Default != "" && s.Name != "budget" {
			set[s.Name] = settings.Parse(s.Name, s.Default)
		}
	}
	got, err := OptionsOf(set, nil)
	want, _ := OptionsOf(nil, nil)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v\n%+v", err, got, want)
	}
}

// TestEncodingsOfTheSetting: each word of the setting is an encoding, and each encoding is a word of it.
func TestEncodingsOfTheSetting(t *testing.T) {
	row, _ := settings.Lookup("encoding")
	words := strings.Fields(row.Words)
	for _, w := range words {
		o, err := OptionsOf(map[string]json.RawMessage{"encoding": json.RawMessage(`"` + w + `"`), "model": json.RawMessage(`"my-own"`)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		m := o.Window(nil).Counter.Model
		if alias := w == "gpt2" || w == "o200k_harmony"; !m.Own || (string(m.Encoding) != w) != alias {
			t.Errorf("%s gives %+v", w, m)
		}
	}
	for _, e := range []tokens.Encoding{tokens.O200k, tokens.CL100k, tokens.P50k, tokens.P50kEdit, tokens.R50k} {
		if !slices.Contains(words, string(e)) {
			t.Errorf("the setting encoding lacks %s", e)
		}
	}
	for name, own := range map[string]bool{"gpt-4o": true, "gpt-4": false, "claude-sonnet-4-5": false, "gemini-2.5-pro": false, "": true} {
		if m := tokens.ForModel(name).In("o200k_base"); m.Encoding != tokens.O200k || m.Own != own {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if m := tokens.ForModel("gpt-4o").In("latin-1"); m.Encoding != tokens.O200k || !m.Own {
		t.Errorf("an unknown encoding: %+v", m)
	}
}
