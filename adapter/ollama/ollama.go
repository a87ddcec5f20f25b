// Package ollama registers Ollama's chat as a provider with package adapter. A program imports it for that effect alone.
package ollama

import _ "github.com/chatctx/chatctx/internal/provider/ollama" // registers itself
