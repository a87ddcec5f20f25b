package turn

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"strconv"
	"time"

	"github.com/chatctx/chatctx/adapter"
	_ "github.com/chatctx/chatctx/adapter/all" // a turn can ask every provider of this module
	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/internal/window"
)

// InForce is what a turn would ask with.
type InForce struct {
	Settings map[string]json.RawMessage // the turn's own above those of its branch, and the environment's below
	askHandle
}

// askHandle has what rooms ask of a turn, for window.AskingOf.
type askHandle = window.AskHandle

// InForce returns what the turn would ask with.
func (t *Turn) InForce(ctx context.Context) (*InForce, error) {
	all, err := t.inForce(ctx)
	if err != nil {
		return nil, err
	}
	return &InForce{all, window.AskHandleOf(asker{t, maps.Clone(all)})}, nil
}

// asker answers what rooms ask of a turn.
type asker struct {
	turn    *Turn
	inForce map[string]json.RawMessage
}

func (a asker) Options(ctx context.Context) (window.Options, error) {
	return a.turn.options(ctx, maps.Clone(a.inForce), false)
}

func (a asker) Embedder() (window.Embedder, error) { return a.turn.embedder(a.inForce) }

func (a asker) Compactor() window.Compactor { return a.turn.compactor(a.inForce) }

// options returns the settings of the window. If no budget is set and only the model's server knows what the model takes, the budget is the server's last
// answer; with ask it may be asked again, unless its last answer was certain.
func (t *Turn) options(ctx context.Context, inForce map[string]json.RawMessage, ask bool) (window.Options, error) {
	if n, err := t.serverBudget(ctx, inForce, ask); err != nil {
		return window.Options{}, err
	} else if n > 0 {
		inForce["budget"] = json.RawMessage(strconv.Itoa(n))
	}
	o, err := window.OptionsOf(inForce, t.getenv)
	o.Sent = t.sentTo(inForce)
	o.InForce = func(sessions []branch.Session) int { return t.session(sessions, inForce) }
	if provider, none := providerOf(inForce, t.getenv); none == nil {
		_, within := byProvider(inForce, provider, o)
		o.ProviderCompacts = t.apart(inForce)
		if counts := o.CompactMessages > 0 || o.CompactTurns > 0; within && !(counts && o.ProviderCompacts) { // a request knows no count
			o.StepsOff = append(o.StepsOff, window.CompactStep)
		}
	}
	return o, err
}

// sentTo returns what the provider of settings gets of a message, nil if they name no provider or it does not take them.
func (t *Turn) sentTo(inForce map[string]json.RawMessage) *tokens.Sent {
	provider, err := providerOf(inForce, t.getenv)
	if err != nil {
		return nil // making a body reports it
	}
	service, err := adapter.ServiceOf(provider)
	if err != nil {
		return nil
	}
	r, err := service.Adapter.Reader(&chatctx.Draft{Settings: inForce})
	if err != nil {
		return nil
	}
	return &tokens.Sent{Name: r.Name(), Read: r.Read, Beside: r.Beside()}
}

// askWindow is how long a server may take to say what a model takes.
const askWindow = 10 * time.Second

// serverBudget returns what a request may take according to the model's server, 0 if it does not say.
func (t *Turn) serverBudget(ctx context.Context, inForce map[string]json.RawMessage, ask bool) (int, error) {
	v := settings.Values(inForce)
	if p, err := providerOf(inForce, t.getenv); err != nil || p != adapter.Ollama || v.Has("budget") {
		return 0, nil // a missing provider is reported later
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
	known, err := view.ModelWindowOf(ctx, base.Of(store), server, model)
	if err != nil || known.Sure || !ask {
		return lessAnswer(known.Tokens, out), err
	}
	if said := t.askWindow(ctx, model, inForce); said.Tokens > 0 && said != known {
		known = said
		err = view.SetModelWindow(ctx, base.Of(store), server, model, said)
	}
	return lessAnswer(known.Tokens, out), err
}

// askWindow asks the server. It ignores an error, which sending the request will report.
func (t *Turn) askWindow(ctx context.Context, model string, inForce map[string]json.RawMessage) view.ModelWindow {
	client := t.Client
	if client == nil {
		var err error
		if client, err = t.newClient(adapter.Ollama, inForce); err != nil {
			return view.ModelWindow{}
		}
	}
	w, ok := client.(wire.Windower)
	if !ok {
		return view.ModelWindow{}
	}
	ctx, cancel := context.WithTimeout(ctx, askWindow)
	defer cancel()
	n, sure, err := w.Window(ctx, model)
	if err != nil {
		return view.ModelWindow{}
	}
	return view.ModelWindow{Tokens: int(min(n, math.MaxInt32)), Sure: sure}
}

// setWindow returns the window that settings request from Ollama, 0 if they do not.
func setWindow(inForce map[string]json.RawMessage) int {
	var o struct {
		Window int `json:"num_ctx"`
	}
	_ = json.Unmarshal(inForce["ollama.options"], &o) // the adapter refuses anything but an object
	return max(o.Window, 0)
}

// lessAnswer returns what a window leaves for the request. The answer gets a quarter of the window, or, if its limit is set, that limit, but at most half of
// the window.
func lessAnswer(window, answer int) int {
	if answer == 0 {
		answer = window / 4
	}
	return window - min(answer, window/2)
}
