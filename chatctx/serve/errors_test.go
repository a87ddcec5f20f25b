package serve

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/operation"
)

// TestMain fails if an operation ended, in any test, with a kind of error that its entry does not name.
func TestMain(m *testing.M) {
	var mu sync.Mutex
	faults := map[string]bool{}
	operation.Observed = func(o *operation.Operation, err error) {
		if fault := o.Unlisted(err); fault != nil {
			mu.Lock()
			defer mu.Unlock()
			faults[fault.Error()] = true
		}
	}
	code := m.Run()
	for fault := range faults {
		fmt.Println(fault)
		code = 1
	}
	os.Exit(code)
}

// TestUnlisted: what an entry does not name is found, by its kind and by its exit code.
func TestUnlisted(t *testing.T) {
	get, changes := methodNamed("contexts.get"), methodNamed("contexts.rename")
	for _, c := range []struct {
		of     *method
		err    error
		listed bool
	}{
		{get, base.NotFound("conversation", "x"), true},
		{get, errors.New("the disk is full"), true},
		{get, chatctx.ErrConflict, false},
		{changes, chatctx.ErrConflict, true},
		{changes, operation.Refused(418, "teapot", "no coffee"), false},
		{methodNamed("labels.list"), base.NotFound("conversation", "x"), false},
	} {
		if err := c.of.Unlisted(c.err); (err == nil) != c.listed {
			t.Errorf("%s, %v: %v", c.of.Name, c.err, err)
		}
	}
}

// TestKindsAreOnce: a kind of error stands in the table once, and no operation names one that does not.
func TestKindsAreOnce(t *testing.T) {
	var names []string
	for _, k := range operation.Kinds() {
		if slices.Contains(names, k.Name) || k.Does == "" || len(k.Codes) == 0 || k.Status < 400 {
			t.Errorf("kind %+v", k)
		}
		names = append(names, k.Name)
	}
	for _, m := range methods() {
		for _, k := range m.Named() {
			if !slices.Contains(names, k) {
				t.Errorf("%s names %q, which is no kind of error", m.Name, k)
			}
		}
	}
}
