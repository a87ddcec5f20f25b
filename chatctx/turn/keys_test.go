package turn

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/settings"
)

// network is where every request ends: it only records which key went to which host.
type network struct{ got []string }

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	key := "-"
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key"} {
		if v := r.Header.Get(name); v != "" {
			key = strings.TrimPrefix(v, "Bearer ")
		}
	}
	n.got = append(n.got, r.URL.Host+" "+key)
	return nil, errors.New("there is no network")
}

// fields parses settings: NAME=VALUE separated by blanks.
func fields(list string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, f := range strings.Fields(list) {
		name, value, _ := strings.Cut(f, "=")
		out[name] = settings.Parse(name, value)
	}
	return out
}

// keyEnv returns an environment with the keys of all providers, whose values are the variables' names.
func keyEnv(more string) func(string) string {
	env := map[string]string{"VICTIM": "VICTIM", "OTHER": "OTHER"}
	for _, service := range adapter.Services() {
		for _, name := range service.Place.KeyEnv {
			env[name] = name
		}
	}
	for _, f := range strings.Fields(more) {
		name, value, _ := strings.Cut(f, "=")
		env[name] = value
	}
	return func(name string) string { return env[name] }
}

// models names a model of each provider that its name identifies.
var models = map[string]string{adapter.OpenAI: "gpt-4o", adapter.Responses: "codex-mini", adapter.Anthropic: "claude-sonnet-4-5", adapter.Gemini: "gemini-2.5-pro", adapter.Ollama: "llama3:1b"}

// own are the providers' own hosts with the keys that go there.
var own = map[string]string{
	adapter.OpenAI: "api.openai.com OPENAI_API_KEY", adapter.Responses: "api.openai.com OPENAI_API_KEY", adapter.Anthropic: "api.anthropic.com ANTHROPIC_API_KEY",
	adapter.Gemini: "generativelanguage.googleapis.com GEMINI_API_KEY", adapter.Ollama: "127.0.0.1:11434 OLLAMA_API_KEY",
}

// asks sends one request of each kind with the settings of the turn's branch, and returns which key went where: in the conversation, beside it, for vectors,
// and for the list of models.
func asks(t *testing.T, turn *Turn) (chat, aside, vectors, list string) {
	t.Helper()
	one := func(do func()) string {
		n := &network{}
		turn.HTTP.HTTP, turn.HTTP.Limits.Retries = &http.Client{Transport: n}, -1
		do()
		slices.Sort(n.got)
		return strings.Join(slices.Compact(n.got), ", ")
	}
	ctx := context.Background()
	chat = one(func() { _, _ = turn.Send(ctx, user("hi")) })
	aside = one(func() {
		if c, err := turn.Completer(ctx); err == nil {
			_, _ = c.Complete(ctx, enhancer.Prompt{System: "s", Text: "p", Limit: 10})
		}
	})
	vectors = one(func() {
		if e, err := embedderOf(ctx, turn); err == nil && e != nil {
			_, _ = e.Embed(ctx, []string{"a"})
		}
	})
	list = one(func() {
		if c, _, err := turn.NewClient(ctx, ""); err == nil {
			_, _ = c.Models(ctx)
		}
	})
	return chat, aside, vectors, list
}

// TestALoneKeyGoesNowhere: a key without an address or provider beside it is sent to nobody, wherever it is set, whichever model is asked, and whatever the
// environment says.
func TestALoneKeyGoesNowhere(t *testing.T) {
	for _, service := range adapter.Services() {
		provider := service.Name
		for _, place := range []string{"store", "context", "branch", "environment", "turn"} {
			for _, moved := range []bool{false, true} {
				env, want := "", own[provider]
				if moved {
					env, want = service.Place.BaseEnv[0]+"=http://127.0.0.1:9", "127.0.0.1:9 "+service.Place.KeyEnv[0]
				}
				const lone = "key_env=VICTIM compact.key_env=VICTIM embedding.key_env=VICTIM"
				turn := newTurn(t, newProvider(t))
				turn.Settings = fields("model=" + models[provider])
				var err error
				switch b := turn.Context.Begin(""); place {
				case "store":
					_, err = turn.Context.Store().SetSettings(t.Context(), fields(lone))
				case "context":
					b.SetContextSettings(fields(lone))
					_, err = b.Commit(t.Context())
				case "branch":
					b.SetSettings(fields(lone))
					_, err = b.Commit(t.Context())
				case "environment":
					env += " CHATCTX_KEY_ENV=VICTIM CHATCTX_COMPACT_KEY_ENV=VICTIM CHATCTX_EMBEDDING_KEY_ENV=VICTIM"
				case "turn":
					turn.Settings = fields("model=" + models[provider] + " " + lone)
				}
				if err != nil {
					t.Fatal(err)
				}
				turn.Settings["embedding.model"] = settings.Parse("embedding.model", "small")
				turn.Getenv = keyEnv(env)
				chat, aside, vectors, list := asks(t, turn)
				wantVectors := own[adapter.OpenAI]
				if moved && service.Place.BaseEnv[0] == "OPENAI_BASE_URL" {
					wantVectors = want
				}
				if chat != want || aside != want || list != want || vectors != wantVectors {
					t.Errorf("%s, of the %s, moved %v: %q, %q, %q, %q, want %q", provider, place, moved, chat, aside, list, vectors, want)
				}
			}
		}
	}
}

// TestWhichKeyGoesWhere: places, the widest first (store, context, branch, the turn's own), an environment, and which key is sent where: in the conversation,
// and beside it.
func TestWhichKeyGoesWhere(t *testing.T) {
	for _, test := range []struct {
		name        string
		places      [4]string
		env         string
		chat, aside string
	}{
		{"a provider's own key in another variable", [4]string{"provider=openai key_env=OTHER", "", "", "model=gpt-4o"}, "", "api.openai.com OTHER", ""},
		{"…of Anthropic, on the branch", [4]string{"", "", "provider=anthropic key_env=OTHER model=claude-x", ""}, "", "api.anthropic.com OTHER", ""},
		{"…of Gemini, of the context", [4]string{"", "provider=gemini key_env=OTHER model=gemini-x", "", ""}, "", "generativelanguage.googleapis.com OTHER", ""},
		{"…of Ollama", [4]string{"", "", "provider=ollama key_env=OTHER model=llama3:1b", ""}, "", "127.0.0.1:11434 OTHER", ""},
		{"…of Ollama, whose host the environment names", [4]string{"", "", "provider=ollama key_env=OTHER model=llama3:1b", ""}, "OLLAMA_HOST=10.0.0.7", "10.0.0.7:11434 OLLAMA_API_KEY", ""},
		{"…of Ollama's service", [4]string{"", "", "provider=ollama key_env=OTHER model=llama3:1b", ""}, "OLLAMA_HOST=https://ollama.com", "ollama.com:443 OTHER", ""},
		{"…of Responses", [4]string{"", "", "provider=openai-responses key_env=OTHER model=gpt-5", ""}, "", "api.openai.com OTHER", ""},
		{"it does not go to another model's provider", [4]string{"provider=openai key_env=OTHER", "", "", "model=claude-sonnet-4-5"}, "", "api.anthropic.com ANTHROPIC_API_KEY", ""},
		{"…nor to one that is named", [4]string{"provider=openai key_env=OTHER", "", "", "provider=gemini model=gemini-x"}, "", "generativelanguage.googleapis.com GEMINI_API_KEY", ""},
		{"…nor to one that the branch names", [4]string{"provider=openai key_env=OTHER", "", "provider=anthropic model=claude-x", ""}, "", "api.anthropic.com ANTHROPIC_API_KEY", ""},
		{"…nor to the address in the environment, which has its own", [4]string{"provider=openai key_env=OTHER", "", "", "model=gpt-4o"}, "OPENAI_BASE_URL=http://127.0.0.1:9", "127.0.0.1:9 OPENAI_API_KEY", ""},
		{"…but to the provider's other hosts", [4]string{"provider=openai key_env=OTHER", "", "", "model=gpt-4o"}, "OPENAI_BASE_URL=https://eu.api.openai.com/v1", "eu.api.openai.com OTHER", ""},
		{"a provider of another place is no reason", [4]string{"provider=openai", "", "key_env=OTHER model=gpt-4o", ""}, "", "api.openai.com OPENAI_API_KEY", ""},
		{"an address with its key", [4]string{"", "base_url=http://127.0.0.1:9/v1 key_env=OTHER", "", "model=claude-x"}, "", "127.0.0.1:9 OTHER", ""},
		{"an address without one", [4]string{"", "base_url=http://127.0.0.1:9/v1", "", "model=gpt-4o"}, "", "127.0.0.1:9 -", ""},
		{"an address below a provider's key", [4]string{"provider=openai key_env=OTHER", "base_url=http://127.0.0.1:9/v1", "", "model=gpt-4o"}, "", "127.0.0.1:9 -", ""},
		{"a provider's key below an address of that protocol", [4]string{"base_url=http://127.0.0.1:9/v1", "", "provider=openai key_env=OTHER", "model=gpt-4o"}, "", "127.0.0.1:9 -", ""},
		{"the environment's address with its key", [4]string{"", "", "model=gpt-4o", ""}, "CHATCTX_BASE_URL=http://127.0.0.1:9/v1 CHATCTX_KEY_ENV=OTHER", "127.0.0.1:9 OTHER", ""},
		{"the environment's address, a key of the store", [4]string{"key_env=OTHER provider=openai", "", "model=gpt-4o", ""}, "CHATCTX_BASE_URL=http://127.0.0.1:9/v1", "127.0.0.1:9 -", ""},
		{"the environment's provider with its key", [4]string{"", "", "model=gpt-4o", ""}, "CHATCTX_PROVIDER=openai CHATCTX_KEY_ENV=OTHER", "api.openai.com OTHER", ""},
		{"the key of the turn's provider", [4]string{"", "", "model=x", "provider=openai key_env=OTHER"}, "", "api.openai.com OTHER", ""},
		{"summaries by another model of another provider", [4]string{"provider=openai key_env=OTHER compact.model=claude-x", "", "model=gpt-4o", ""}, "", "api.openai.com OTHER", "api.anthropic.com ANTHROPIC_API_KEY"},
		{"summaries with a key for their provider", [4]string{"compact.provider=anthropic compact.model=claude-x compact.key_env=OTHER", "", "model=gpt-4o", ""}, "", "api.openai.com OPENAI_API_KEY", "api.anthropic.com OTHER"},
		{"…which the environment has moved", [4]string{"compact.provider=anthropic compact.model=claude-x compact.key_env=OTHER", "", "model=gpt-4o", ""}, "ANTHROPIC_BASE_URL=http://127.0.0.1:9", "api.openai.com OPENAI_API_KEY", "127.0.0.1:9 ANTHROPIC_API_KEY"},
		{"summaries at their own address", [4]string{"compact.base_url=http://127.0.0.1:9/v1 compact.model=m compact.key_env=OTHER", "", "model=gpt-4o", ""}, "", "api.openai.com OPENAI_API_KEY", "127.0.0.1:9 OTHER"},
		{"…their key does not go to the conversation's address", [4]string{"", "", "model=m base_url=http://127.0.0.1:9/v1 compact.provider=openai compact.key_env=OTHER", ""}, "", "127.0.0.1:9 -", "127.0.0.1:9 -"},
		{"…nor the conversation's to theirs", [4]string{"", "", "model=m base_url=http://127.0.0.1:9/v1 key_env=OTHER compact.base_url=http://127.0.0.1:8/v1 compact.model=n", ""}, "", "127.0.0.1:9 OTHER", "127.0.0.1:8 -"},
	} {
		turn := newTurn(t, newProvider(t))
		b := turn.Context.Begin("")
		b.SetContextSettings(fields(test.places[1]))
		b.SetSettings(fields(test.places[2]))
		_, err := turn.Context.Store().SetSettings(t.Context(), fields(test.places[0]))
		if _, again := b.Commit(t.Context()); err != nil || again != nil {
			t.Fatal(err, again)
		}
		turn.Settings, turn.Getenv = fields(test.places[3]), keyEnv(test.env)
		if test.aside == "" {
			test.aside = test.chat
		}
		chat, aside, _, list := asks(t, turn)
		if chat != test.chat || aside != test.aside || list != test.chat {
			t.Errorf("%s: %q, %q beside, %q for the list, want %q and %q", test.name, chat, aside, list, test.chat, test.aside)
		}
	}
}
