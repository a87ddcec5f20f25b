// Package all registers the providers of this module with package adapter. A program imports it for that effect alone.
package all

import (
	_ "github.com/chatctx/chatctx/adapter/anthropic" // registers itself
	_ "github.com/chatctx/chatctx/adapter/gemini"
	_ "github.com/chatctx/chatctx/adapter/ollama"
	_ "github.com/chatctx/chatctx/adapter/openai"
	_ "github.com/chatctx/chatctx/adapter/responses"
)
