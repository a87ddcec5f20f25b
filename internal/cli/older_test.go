package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/pool"
)

// approvedBefore makes a store with an approved call, as programs stored one before approvals held what the tool runs.
func approvedBefore(t *testing.T) (file string, c *chatctx.ChatContext) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "s.db")
	s := storetest.Open(t, file, chatctx.Options{Create: true, Judge: approval.Rules{}})
	c, err := s.New(t.Context(), record.NewContext{Title: "Old", Messages: []*chatctx.Message{pool.NewText(pool.User, "go"),
		{Role: pool.Assistant, Calls: []pool.Call{{ID: "c1", Tool: "look", Arguments: json.RawMessage(`{}`)}}}}})
	if err == nil {
		_, err = s.PutTool(t.Context(), record.Tool{Name: "look", Command: []string{"echo", "seen"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	b := c.Begin("")
	b.Decide("c1", record.Verdict{Status: pool.Approved})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = base.Of(s).Engine.Update(t.Context(), func(tx kv.RwTx) error {
		return tx.Scan("call", kv.Range{}, func(key, value []byte) error {
			var rec record.CallRecord
			if err := cbor.Unmarshal(value, &rec); err != nil {
				return err
			}
			if rec.Decisions[0].Runs == nil {
				t.Fatal("the approval holds nothing")
			}
			rec.Decisions[0].Runs = nil
			raw, err := stored.Marshal(rec)
			if err != nil {
				return err
			}
			return tx.Put("call", bytes.Clone(key), stored.AddChecksum(raw, nil))
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return file, c
}

// TestApprovalsOfBeforeAreNamed: what runs a call under such an approval says so once: the command, the API, and the screen.
func TestApprovalsOfBeforeAreNamed(t *testing.T) {
	for name, runs := range map[string]func(t *testing.T, file string, c *chatctx.ChatContext) (said string){
		"calls run": func(t *testing.T, file string, _ *chatctx.ChatContext) string {
			var out, errOut bytes.Buffer
			if code := Main([]string{"--store", file, "calls", "run"}, strings.NewReader(""), &out, &errOut); code != 0 {
				t.Errorf("exit code %d", code)
			}
			return errOut.String()
		},
		"calls run CALL": func(t *testing.T, file string, _ *chatctx.ChatContext) string {
			var out, errOut bytes.Buffer
			if code := Main([]string{"--store", file, "calls", "run", "c1"}, strings.NewReader(""), &out, &errOut); code != 0 {
				t.Errorf("exit code %d", code)
			}
			return errOut.String()
		},
		"calls run --json": func(t *testing.T, file string, _ *chatctx.ChatContext) string {
			var out, errOut bytes.Buffer
			if code := Main([]string{"--store", file, "calls", "run", "--json"}, strings.NewReader(""), &out, &errOut); code != 0 {
				t.Errorf("exit code %d", code)
			}
			var v struct {
				Tool string `json:"tool_name"`
				Note string `json:"note"`
			}
			if err := json.Unmarshal(out.Bytes(), &v); err != nil {
				t.Errorf("%v: %s", err, &out)
			}
			return v.Tool + " " + v.Note
		},
		"ui": func(t *testing.T, _ string, c *chatctx.ChatContext) (said string) {
			r, _ := testRun(t.Context())
			defer r.executors.close()
			turn := r.turnOnScreen(c, "main", nil, func(text string) { said += text + "\n" })
			snap, err := c.Snapshot(t.Context(), "main")
			if err != nil {
				t.Fatal(err)
			}
			last, err := snap.Page(t.Context(), snap.Len(), snap.Len())
			if err != nil {
				t.Fatal(err)
			}
			if goOn, err := turn.Calls(t.Context(), "main", last[0].Message, nil); !goOn || err != nil {
				t.Errorf("the call did not run: %v, %v", goOn, err)
			}
			return said
		},
	} {
		t.Run(name, func(t *testing.T) {
			file, c := approvedBefore(t)
			if said := runs(t, file, c); strings.Count(said, "look "+approval.OlderNote) != 1 {
				t.Errorf("it says %q", said)
			}
			call, err := c.Store().Call(t.Context(), c.ID.String(), "main", "c1")
			if err != nil || call.Execution != pool.Done {
				t.Errorf("the call is %v, %v", call, err)
			}
		})
	}
}
