// Package openai registers OpenAI's Chat Completions, which many servers speak, as a provider with package adapter. A program imports it for that effect alone.
package openai

import _ "github.com/chatctx/chatctx/internal/provider/openai" // registers itself
