package enhancer

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/chatctx/chatctx/chatctx/settings"
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
