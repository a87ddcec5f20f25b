package poolstore

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/pool"
)

// TestFormatDocument: the tables of the format document have the keys of the records, no more and no fewer.
func TestFormatDocument(t *testing.T) {
	text := formatDocument(t)
	for heading, v := range map[string]any{"## Bucket `pool`": pool.Message{}, "**Part.**": pool.Part{}, "**Call.**": pool.Call{}, "**Result.**": pool.Result{},
		"**Metadata.**": pool.Metadata{}, "**Source.**": pool.Source{}, "## Bucket `artifact`": header{}} {
		_, section, found := strings.Cut(text, "\n"+heading)
		_, table, hasTable := strings.Cut(section, "| --- |")
		table, _, _ = strings.Cut(table, "\n\n")
		if !found || !hasTable {
			t.Errorf("no table under %s", heading)
			continue
		}
		var want, got []int
		for i := range reflect.TypeOf(v).NumField() {
			name, _, _ := strings.Cut(reflect.TypeOf(v).Field(i).Tag.Get("cbor"), ",")
			if k, err := strconv.Atoi(name); err == nil {
				want = append(want, k)
			}
		}
		for _, row := range regexp.MustCompile(`(?m)^\| ([\d, ]+) \|`).FindAllStringSubmatch(table, -1) {
			for _, key := range strings.Split(row[1], ", ") {
				k, err := strconv.Atoi(key)
				if err != nil {
					t.Errorf("%s: row %q", heading, row[0])
				}
				got = append(got, k)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has the keys %v, the record %v", heading, got, want)
		}
	}
}

// formatDocument is the part of the format's description that is about messages.
func formatDocument(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../../docs/format*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "## Bucket `pool`") {
			return string(text)
		}
	}
	t.Fatal("no document describes the bucket pool")
	return ""
}
