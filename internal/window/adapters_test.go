package window

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/adaptertest"
	_ "github.com/chatctx/chatctx/adapter/all"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/testkit"
)

// TestWhatIsLeftIsValidForAllAdapters: drafts after the steps are valid requests for every provider, whatever was removed.
func TestWhatIsLeftIsValidForAllAdapters(t *testing.T) {
	for provider, model := range map[string]string{"openai": "gpt-4o", "openai-responses": "gpt-5", "anthropic": "claude-sonnet-4-5", "gemini": "gemini-2.5-pro", "ollama": "llama3.2"} {
		t.Run(provider, func(t *testing.T) {
			sent, n := 0, 0
			for s := range testkit.Seeds(t, 25) {
				seed := int(s)
				n++
				d := adaptertest.Random(uint64(seed), provider, model)
				if seed%2 == 0 {
					d.Messages = newWriter(int64(seed)).random(2 + seed%30).d.Messages
				}
				o := options(200 + seed%23*300)
				o.KeepBlocks, o.TextRules = seed%4, textRules[:seed%3]
				o.PruneThreshold, o.PruneKeep = 500*(seed%5), 300*(seed%3)
				if send(t, seed, provider, model, d, o) {
					sent++
				}
			}
			if sent < n/4 {
				t.Errorf("only %d of %d drafts could be sent", sent, n)
			}
		})
	}
}

// send checks the body of a draft after the steps. It returns false if the draft could not be made to fit, is empty, or has a setting that is not for this
// provider.
func send(t *testing.T, seed int, provider, model string, d *chatctx.Draft, o Options) bool {
	t.Helper()
	o.Model = model
	if _, err := Standard(o, kept, &shorter{}).Run(t.Context(), d); err != nil {
		var over *enhancer.BudgetError
		if !errors.As(err, &over) {
			t.Fatalf("seed %d: %v", seed, err)
		}
		return false
	}
	if d.Settings == nil {
		d.Settings = map[string]json.RawMessage{}
	}
	d.Settings["model"], _ = json.Marshal(model)
	body, err := adaptertest.Bytes(provider, d)
	if errors.Is(err, chatctx.ErrEmpty) || errors.Is(err, adapter.ErrSetting) {
		return false
	}
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if err := adaptertest.Validate(provider, model, body); err != nil {
		t.Fatalf("seed %d: %v\n%.2000s", seed, err, body)
	}
	return true
}
