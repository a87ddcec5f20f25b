package all_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/adaptertest"
	_ "github.com/chatctx/chatctx/adapter/all"
	"github.com/chatctx/chatctx/internal/testkit"
)

// subjects are the providers with a model of each kind, and the file with the schema.
var subjects = []struct {
	provider, file string
	models         []string
}{
	{adapter.Anthropic, "anthropic.json", []string{"claude-3-5-sonnet-20241022", "claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-4-8"}},
	{adapter.OpenAI, "openai-chat.json", []string{"gpt-4o", "gpt-5", "gpt-5.4", "o3"}},
	{adapter.Responses, "openai-responses.json", []string{"gpt-4o", "gpt-5", "gpt-5.4"}},
	{adapter.Gemini, "gemini.json", []string{"gemini-2.5-pro", "gemini-3-pro"}},
	{adapter.Ollama, "ollama.json", []string{"llama3.2"}},
}

// TestSchemas checks random bodies against the schemas that the providers publish.
func TestSchemas(t *testing.T) {
	schemas := testkit.Shared(t, "provider-schemas")
	for _, s := range subjects {
		t.Run(s.provider, func(t *testing.T) {
			c := jsonschema.NewCompiler()
			c.AssertContent()
			schema, err := c.Compile(filepath.Join(schemas, s.file))
			if err != nil {
				t.Fatal(err)
			}
			for n := range testkit.Seeds(t, 300) {
				model := s.models[n%uint64(len(s.models))]
				raw, err := adaptertest.Bytes(s.provider, adaptertest.Random(n, s.provider, model))
				if errors.Is(err, adapter.ErrSetting) {
					continue
				}
				if err != nil {
					t.Fatalf("seed %d: %v", n, err)
				}
				body, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
				if err != nil {
					t.Fatalf("seed %d: %v", n, err)
				}
				if err := schema.Validate(body); err != nil {
					t.Fatalf("seed %d, %s: %v\n%s", n, model, err, raw)
				}
			}
		})
	}
}
