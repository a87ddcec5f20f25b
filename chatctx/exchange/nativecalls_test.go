package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/pool"
)

// TestCallsOfAFileDecideNothing: in whatever state a file says that a call is, also in one that no call can have, nobody can run it here before somebody decides. Only one that
// was denied, or that ran to its end, is over.
func TestCallsOfAFileDecideNothing(t *testing.T) {
	ctx := context.Background()
	s := memoryStore(t)
	c, err := s.New(ctx, record.NewContext{Title: "Calls"})
	if err == nil {
		_, err = c.Append(ctx, "", pool.NewText(pool.User, "q"), &pool.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "c1", Tool: "read", Arguments: []byte(`{}`)}}})
	}
	var export bytes.Buffer
	if err == nil {
		err = Export(ctx, s, ExportOptions{Context: c.ID.String()}, &export)
	}
	if err != nil {
		t.Fatal(err)
	}
	const state = `"approval_status":"pending","execution":"none"`
	parts := strings.Split(export.String(), state) // the message's line has it, and the call's own
	if len(parts) != 3 {
		t.Fatalf("the export does not have the state twice: %s", export.String())
	}
	for _, status := range []pool.Status{pool.Pending, pool.Approved, pool.Denied, "", "whatever", "Approved"} {
		for _, execution := range []pool.Execution{pool.NotRun, pool.Running, pool.Done, pool.Failed, pool.Uncertain, "", "now"} {
			said := fmt.Sprintf(`"approval_status":%q,"execution":%q`, status, execution)
			for of, text := range map[string]string{
				"message": parts[0] + said + parts[1] + state + parts[2], "call": parts[0] + state + parts[1] + said + parts[2], "both": parts[0] + said + parts[1] + said + parts[2],
			} {
				there, _ := imported(t, []byte(text))
				for call, err := range there.Calls(ctx, record.CallFilter{}) {
					if err != nil {
						t.Fatal(err)
					}
					if call.Status != pool.Pending || call.Execution != pool.NotRun {
						t.Errorf("%s %s/%s is %s/%s here", of, status, execution, call.Status, call.Execution)
					}
				}
				for _, again := range []bool{false, true} {
					if _, err := there.ClaimCall(ctx, "Calls", "", "c1", record.ClaimOptions{Again: again}); !errors.Is(err, chatctx.ErrConflict) && !errors.Is(err, chatctx.ErrNotFound) {
						t.Errorf("%s %s/%s is claimed: %v", of, status, execution, err)
					}
				}
				storetest.Check(t, there)
			}
		}
	}
}
