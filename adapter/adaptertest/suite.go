// Package adaptertest is the test suite for all adapters: the states that providers are known to refuse, random drafts judged by validators, and the laws of
// bodies: the same draft gives the same body, and a longer one begins with a shorter one.
//
// The validators follow what the providers document and refuse, not the adapters.
package adaptertest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// Subject is an adapter under test.
type Subject struct {
	Provider string
	Adapt    func(*chatctx.Draft) (adapter.Body, error)
	Models   []string // one of each kind that the adapter distinguishes
	// Judge returns the violations of the provider's rules in a body, nil if there are none: what the provider itself would refuse, and not what the adapter happens
	// to write. model is the model of the request, if the body does not name it.
	Judge func(model string, body []byte) error
	// TextOnly means that the provider takes no images: a text stands for each.
	TextOnly bool
}

// Of returns an adapter as a Subject. The providers of this module have a Judge; for another one, set it.
func Of[Body adapter.Body](provider string, a adapter.Adapter[Body], models ...string) Subject {
	return Subject{Provider: provider, Adapt: func(d *chatctx.Draft) (adapter.Body, error) { return a.Adapt(d) }, Models: models, Judge: judges[provider]}
}

// Run runs the suite.
func Run(t *testing.T, s Subject) {
	if s.Judge == nil {
		t.Fatalf("the Subject %s has no Judge: nothing would say which bodies are wrong", s.Provider)
	}
	t.Run("states", s.states)
	t.Run("random", s.random)
	t.Run("prefix", s.prefix)
	t.Run("errors", s.errors)
}

// Body returns the body that a registered provider's adapter makes of a draft.
func Body(provider string, d *chatctx.Draft) (adapter.Body, error) {
	service, err := adapter.ServiceOf(provider)
	if err != nil {
		return nil, err
	}
	return service.Adapter.Adapt(d)
}

// Bytes returns the bytes of that body.
func Bytes(provider string, d *chatctx.Draft) ([]byte, error) {
	b, err := Body(provider, d)
	if err != nil {
		return nil, err
	}
	return b.MarshalJSON()
}

// body returns the bytes of a draft's body.
func (s Subject) body(t *testing.T, d *chatctx.Draft) []byte {
	t.Helper()
	raw, err := s.bytes(d)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (s Subject) bytes(d *chatctx.Draft) ([]byte, error) {
	b, err := s.Adapt(d)
	if err != nil {
		return nil, err
	}
	return b.MarshalJSON()
}

// without removes the settings that the adapter refuses from a draft, and returns how many: a provider need not know them all.
func (s Subject) without(d *chatctx.Draft) (refused int) {
	for {
		var wrong *adapter.SettingError
		if _, err := s.Adapt(d); !errors.As(err, &wrong) || d.Settings[wrong.Key] == nil {
			return refused
		}
		delete(d.Settings, wrong.Key)
		refused++
	}
}

// model returns the model for a seed.
func (s Subject) model(seed uint64) string { return s.Models[seed%uint64(len(s.Models))] }

func (s Subject) random(t *testing.T) {
	bodies, refused := 0, 0
	for seed := range testkit.Seeds(t, 1000) {
		model := s.model(seed)
		d := Random(seed, s.Provider, model)
		out := s.without(d)
		d.Notes = nil
		raw, err := s.bytes(d)
		if err != nil {
			t.Fatalf("seed %d, %s: %v", seed, model, err)
		}
		bodies, refused = bodies+1, refused+out
		if err := s.Judge(model, raw); err != nil {
			t.Fatalf("seed %d, %s: %v\n%s", seed, model, err, raw)
		}
		if foreign := s.foreign(raw, model); foreign != "" {
			t.Fatalf("seed %d, %s: sends a signature of %s\n%s", seed, model, foreign, raw)
		}
		d = Random(seed, s.Provider, model)
		s.without(d)
		if again := s.body(t, d); !bytes.Equal(raw, again) {
			t.Fatalf("seed %d, %s: two bodies of one draft:\n%s\n%s", seed, model, raw, again)
		}
	}
	t.Logf("%d bodies, without %d settings that were refused", bodies, refused)
}

var signature = regexp.MustCompile(`U0lHO[A-Za-z0-9+/=]+`)

// foreign returns a signature of another provider or model in a body, "" if there is none.
func (s Subject) foreign(body []byte, model string) string {
	for _, f := range signature.FindAll(body, -1) {
		raw, err := base64.StdEncoding.DecodeString(string(f))
		if err != nil {
			return string(f)
		}
		from := strings.SplitN(string(raw), ":", 3)
		if from[1] != s.Provider && from[1] != "" || from[2] != model && from[2] != "" {
			return string(raw)
		}
	}
	return ""
}

// prefix checks that a branch's pieces begin with those of the branch before it grew, wherever that ended in a whole message.
func (s Subject) prefix(t *testing.T) {
	for seed := range testkit.Seeds(t, 100) {
		model := s.model(seed)
		d := Random(seed+1e9, s.Provider, model)
		d.Settings = map[string]json.RawMessage{"model": d.Settings["model"]}
		d.System, d.Tools = "You help.", []record.Tool{{Name: "search"}}
		all := d.Messages
		if last := all[len(all)-1].Message; len(last.Content) > 10 {
			all = all[:len(all)-1] // so many images change what was sent before
		}
		var before []adapter.Piece
		for k := 1; k <= len(all); k++ {
			d.Messages = all[:k]
			b, err := s.Adapt(d)
			if err != nil {
				t.Fatal(err)
			}
			pieces := b.Prefix()
			for i := range before {
				if i >= len(pieces) || !bytes.Equal(pieces[i].Bytes, before[i].Bytes) {
					t.Fatalf("seed %d, %s: message %d changed piece %d\nbefore: %s\nafter:  %s", seed, model, k, i, before[i].Bytes, piece(pieces, i))
				}
			}
			if whole(all[k-1].Message) {
				before = pieces
				if all[k-1].Role == pool.Assistant {
					before = before[:len(before)-1] // without Continue
				}
			}
		}
	}
}

func piece(pieces []adapter.Piece, i int) []byte {
	if i < len(pieces) {
		return pieces[i].Bytes
	}
	return nil
}

// whole reports whether a message ends everything before it: a user's text, or an assistant's without calls.
func whole(m *pool.Message) bool {
	if m.Unsent || len(m.Calls) > 0 || m.Role != pool.User && m.Role != pool.Assistant {
		return false
	}
	for _, p := range m.Content {
		if p.Type == pool.TextPart && strings.Contains(p.Text, "o") {
			return true
		}
	}
	return false
}

func (s Subject) errors(t *testing.T) {
	model := json.RawMessage(`"` + s.Models[0] + `"`)
	message := []*chatctx.DraftMessage{{Entry: pool.Entry{Message: pool.NewText(pool.User, "hi")}}}
	for name, c := range map[string]struct {
		draft *chatctx.Draft
		want  error
	}{
		"empty":       {&chatctx.Draft{Settings: map[string]json.RawMessage{"model": model}}, chatctx.ErrEmpty},
		"no model":    {&chatctx.Draft{Messages: message}, adapter.ErrNoModel},
		"unknown":     {&chatctx.Draft{Messages: message, Settings: map[string]json.RawMessage{"model": model, "temprature": json.RawMessage("1")}}, adapter.ErrSetting},
		"wrong value": {&chatctx.Draft{Messages: message, Settings: map[string]json.RawMessage{"model": model, "temperature": json.RawMessage(`"hot"`)}}, adapter.ErrSetting},
		"in the way":  {&chatctx.Draft{Messages: message, Settings: map[string]json.RawMessage{"model": model, s.Provider + ".messages": json.RawMessage(`[]`)}}, adapter.ErrSetting},
	} {
		if _, err := s.Adapt(c.draft); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
