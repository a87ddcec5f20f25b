package turn

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/all"
	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/settings"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/enhancer/tokens"
)

// Options are the settings of the window that the turn goes by. They come from the store alone.
func (t *Turn) Options(ctx context.Context) (enhancer.Options, error) {
	inForce, err := t.inForce(ctx)
	if err != nil {
		return enhancer.Options{}, err
	}
	return t.options(ctx, inForce, false)
}

// options are the settings of the window. Where no budget is set and the model runs on a server that alone knows what it takes, what that said last is the budget; ask: it may be asked, if
// it did not say for sure.
func (t *Turn) options(ctx context.Context, inForce map[string]json.RawMessage, ask bool) (enhancer.Options, error) {
	if n, err := t.serverBudget(ctx, inForce, ask); err != nil {
		return enhancer.Options{}, err
	} else if n > 0 {
		inForce["budget"] = json.RawMessage(strconv.Itoa(n))
	}
	o, err := enhancer.OptionsOf(inForce, t.getenv)
	o.Sent = sentTo(inForce)
	return o, err
}

// sentTo says what of a message the provider of settings gets, nil where they name none, or it does not take them.
func sentTo(inForce map[string]json.RawMessage) *tokens.Sent {
	provider, err := providerOf(inForce)
	if err != nil {
		return nil // who asks for a body is told
	}
	r, err := all.Reader(provider, &chatctx.Draft{Settings: inForce})
	if err != nil {
		return nil
	}
	return &tokens.Sent{Name: r.Name(), Read: r.Read, Beside: r.Beside()}
}

// askWindow is how long a server may take to say what a model takes.
const askWindow = 10 * time.Second

// serverBudget is what a request may take by the word of the server that runs the model, 0 for nothing.
func (t *Turn) serverBudget(ctx context.Context, inForce map[string]json.RawMessage, ask bool) (int, error) {
	v := settings.Values(inForce)
	if p, err := providerOf(inForce); err != nil || p != adapter.Ollama || v.Has("budget") {
		return 0, nil // who has no provider is told so later
	}
	out := v.Count("max_tokens")
	if n := setWindow(inForce); n > 0 {
		return lessAnswer(n, out), nil
	}
	server := v.Text("base_url")
	if server == "" {
		server = t.getenv("OLLAMA_HOST")
	}
	model := adapter.BareModel(&adapter.Settings{Model: v.Text("model"), BaseURL: v.Text("base_url")}, adapter.Ollama)
	store := t.Context.Store()
	known, err := store.ModelWindow(ctx, server, model)
	if err != nil || known.Sure || !ask {
		return lessAnswer(known.Tokens, out), err
	}
	if said := t.askWindow(ctx, model, inForce); said.Tokens > 0 && said != known {
		known = said
		err = store.SetModelWindow(ctx, server, model, said)
	}
	return lessAnswer(known.Tokens, out), err
}

// askWindow asks the server; one that does not answer is heard of when the request is sent.
func (t *Turn) askWindow(ctx context.Context, model string, inForce map[string]json.RawMessage) chatctx.ModelWindow {
	client := t.Client
	if client == nil {
		var err error
		if client, err = t.newClient(adapter.Ollama, inForce); err != nil {
			return chatctx.ModelWindow{}
		}
	}
	w, ok := client.(wire.Windower)
	if !ok {
		return chatctx.ModelWindow{}
	}
	ctx, cancel := context.WithTimeout(ctx, askWindow)
	defer cancel()
	n, sure, err := w.Window(ctx, model)
	if err != nil {
		return chatctx.ModelWindow{}
	}
	return chatctx.ModelWindow{Tokens: int(min(n, math.MaxInt32)), Sure: sure}
}

// setWindow is the window that settings ask Ollama for with each request, 0 for none.
func setWindow(inForce map[string]json.RawMessage) int {
	var o struct {
		Window int `json:"num_ctx"`
	}
	_ = json.Unmarshal(inForce["ollama.options"], &o) // what is no object is for the adapter to refuse
	return max(o.Window, 0)
}

// lessAnswer is what a window leaves for the request: the answer has a quarter of it, or where it is set what it may take, but half at most.
func lessAnswer(window, answer int) int {
	if answer == 0 {
		answer = window / 4
	}
	return window - min(answer, window/2)
}
