package turn

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/internal/provider/openai"
	"github.com/chatctx/chatctx/internal/window"
)

// embedder returns the embedding endpoint that settings name: embedding.model, with embedding.base_url and embedding.key_env if it is not OpenAI's
// own. Any server with OpenAI's protocol works. It is nil if no model is set.
func (t *Turn) embedder(settings map[string]json.RawMessage) (window.Embedder, error) {
	model := textSetting(settings, "embedding.model")
	if model == "" {
		return nil, nil
	}
	own := map[string]json.RawMessage{"base_url": settings["embedding.base_url"], "key_env": settings["embedding.key_env"], "retries": settings["retries"], "timeout": settings["timeout"]}
	sender, err := openai.NewSender("openai", wireOptions(own, t.HTTP, t.getenv))
	if err != nil {
		return nil, err
	}
	return &embedder{model, sender}, nil
}

type embedder struct {
	model  string
	sender *wire.Sender
}

func (e *embedder) Name() string { return e.model }

func (e *embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(struct {
		Model  string   `json:"model"`
		Input  []string `json:"input"`
		Format string   `json:"encoding_format"`
	}{e.model, texts, "float"})
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data []struct {
			Index  int       `json:"index"`
			Vector []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := e.sender.JSON(ctx, "/embeddings", nil, body, &answer); err != nil {
		return nil, err
	}
	out := make([][]float32, len(texts))
	for _, d := range answer.Data {
		if d.Index >= 0 && d.Index < len(out) {
			out[d.Index] = d.Vector
		}
	}
	for i, v := range out {
		if len(v) == 0 {
			return nil, fmt.Errorf("the embedding endpoint gave no vector for text %d of %d", i+1, len(texts))
		}
	}
	return out, nil
}
