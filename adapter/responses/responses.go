// Package responses registers OpenAI's Responses as a provider with package adapter. A program imports it for that effect alone.
package responses

import _ "github.com/chatctx/chatctx/internal/provider/responses" // registers itself
