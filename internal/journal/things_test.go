package journal

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/settings"
)

// TestEachFieldIsInTheTable holds the table of things to the records: a field that is in no list fails, and so does a line without a field.
func TestEachFieldIsInTheTable(t *testing.T) {
	for name, of := range map[string]struct {
		table  map[uint64]field
		record any
	}{"branch": {branchFields, branch.Branch{}}, "context": {contextFields, base.ContextRecord{}}} {
		left := maps.Clone(of.table)
		typ := reflect.TypeOf(of.record)
		for i := range typ.NumField() {
			word, _, _ := strings.Cut(typ.Field(i).Tag.Get("cbor"), ",")
			key, err := strconv.ParseUint(word, 10, 64)
			if err != nil {
				continue // it is not stored
			}
			f, known := left[key]
			if !known {
				t.Errorf("%s: key %d (%s) is in no list of the table of things", name, key, typ.Field(i).Name)
			}
			if f.role == value && f.thing == "" || f.role == each && len(f.thing) != 1 || f.role == here && f.thing != "" {
				t.Errorf("%s: key %d (%s) is restored, but is no thing: %+v", name, key, typ.Field(i).Name, f)
			}
			delete(left, key)
		}
		for key := range left {
			t.Errorf("%s: the table of things has key %d, the record has none", name, key)
		}
	}
}

// TestAnAddressAndItsKeyAreOneThing holds that all settings that say where requests go are one thing, wherever the table of settings has them.
func TestAnAddressAndItsKeyAreOneThing(t *testing.T) {
	one := named(settingThings, "base_url")
	for _, s := range settings.All() {
		last := s.Name[strings.LastIndexByte(s.Name, '.')+1:]
		together := slices.Contains([]string{"base_url", "provider", "key_env", "organization", "organisation", "profile"}, last)
		if s.Type == settings.Address && !together {
			t.Errorf("%s is an address of an unknown name", s.Name)
		}
		for _, name := range []string{s.Name, settings.HeldPrefix + s.Name, settings.HeldPrefix + settings.HeldPrefix + s.Name} {
			if is := named(settingThings, name) == one; is != together {
				t.Errorf("%s is a part of the address: %t, want %t", name, is, together)
			}
		}
	}
	if named(settingThings, "held.temperature") != named(settingThings, "temperature") || named(settingThings, "temperature") == named(settingThings, "top_p") {
		t.Error("a held setting is another thing than what it becomes, or two settings are one")
	}
}
