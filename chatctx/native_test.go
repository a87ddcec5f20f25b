package chatctx

import (
	"reflect"
	"testing"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
)

// TestNativeTypesAreWhole fails when a record gets a field that an export between stores does not carry yet. The fields that are left out on
// purpose are those of the journal and of the way histories are laid out.
func TestNativeTypesAreWhole(t *testing.T) {
	count := func(v any) (n int) {
		for i := range reflect.TypeOf(v).NumField() {
			if reflect.TypeOf(v).Field(i).IsExported() {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		what                    string
		record, native, leftOut int
	}{
		// Messages, Branches, NextOperation, NextSegment, Last, Newest, Redo, StoreLast, StoreAt, Revision, Trashed, Listed, Unknown; the id is the key. Renamed carries
		// RenamedThere too.
		{"context", count(base.ContextRecord{}), count(record.Native{}) - 1, 14},
		// Pieces, Segment, High, Ended, Revision, Last, Newest, Removed, Unknown; Like and Shared stand for the pieces.
		{"branch", count(branch.Branch{}), count(record.NativeBranch{}) - 1, 9},
	} {
		if c.record != c.native+c.leftOut {
			t.Errorf("the record of a %s has %d fields, an export carries %d and leaves out %d", c.what, c.record, c.native, c.leftOut)
		}
	}
}
