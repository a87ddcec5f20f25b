package turn

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/view"
)

// later stores settings as a later version might, past all checks.
func later(t *testing.T, turn *Turn, set map[string]json.RawMessage) {
	t.Helper()
	err := base.Of(turn.Context.Store()).Engine.Update(t.Context(), func(tx kv.RwTx) error { return base.PutRecord(tx, base.MetaBucket, base.MetaSettings, set) })
	if err != nil {
		t.Fatal(err)
	}
}

// TestWhatALaterVersionSet: unknown and invalid settings are kept, reported and not in force; an invalid address stops the request.
func TestWhatALaterVersionSet(t *testing.T) {
	p := newProvider(t, says("Noon."))
	turn := newTurn(t, p)
	later(t, turn, map[string]json.RawMessage{"frob": json.RawMessage("1"), "budget": json.RawMessage(`"much"`), "temperature": json.RawMessage("0.5")})
	if _, err := turn.Send(t.Context(), user("What time is it?")); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(p.bodies[0], `"temperature":0.5`) || strings.Contains(p.bodies[0], "frob") {
		t.Errorf("%s", p.bodies[0])
	}
	ignored, err := view.Ignored(t.Context(), base.ContextOf(turn.Context.Store(), turn.Context.ID), "")
	if err != nil || len(ignored) != 2 || !strings.Contains(ignored[0].Error(), "budget takes") || !strings.Contains(ignored[1].Error(), `no setting "frob"`) {
		t.Errorf("%v %v", ignored, err)
	}
	later(t, turn, map[string]json.RawMessage{"base_url": json.RawMessage(`"unix:/run/model"`)})
	if _, err := turn.Send(t.Context(), user("And now?")); !errors.Is(err, settings.ErrSetting) || len(p.bodies) != 1 {
		t.Errorf("asked %d times: %v", len(p.bodies), err)
	}
}
