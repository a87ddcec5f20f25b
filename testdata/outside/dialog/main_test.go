package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

func TestDialog(t *testing.T) {
	s, err := chatctx.OpenMemory(chatctx.Options{Judge: approval.Rules{}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.AddRule(t.Context(), record.Rule{Effect: record.Deny, Tool: "scuttle"}); err != nil {
		t.Fatal(err)
	}
	asks := &chatctx.Message{Role: pool.Assistant}
	for _, id := range []string{"horn", "anchor", "scuttle", "horn again"} {
		tool, _, _ := strings.Cut(id, " ")
		asks.Calls = append(asks.Calls, pool.Call{ID: id, Tool: tool, Arguments: json.RawMessage(`{"n":1}`)})
	}
	c, err := s.New(t.Context(), record.NewContext{Title: "Boats", Messages: []*chatctx.Message{pool.NewText(pool.User, "Go."), asks}})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := dialog(t.Context(), s, strings.NewReader("y\nnot here\ny\n"), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`horn {"n":1}? [y, or why not] horn approved/done`, `anchor {"n":1}? [y, or why not] denied`, "scuttle"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	states := map[record.CallRef]string{"horn": "approved/done", "anchor": "denied/none", "horn again": "pending/none"}
	for ref, want := range states {
		call, err := s.Call(t.Context(), c.ID.String(), "", ref)
		if err != nil || call.State() != want {
			t.Errorf("%s is %+v, %v", ref, call, err)
		}
	}
	if call, err := s.Call(t.Context(), c.ID.String(), "", "scuttle"); err != nil || call.Status == pool.Approved {
		t.Errorf("what a rule denies is %+v, %v", call, err)
	}
}
