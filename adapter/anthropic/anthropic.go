// Package anthropic registers Anthropic's Messages as a provider with package adapter. A program imports it for that effect alone.
package anthropic

import _ "github.com/chatctx/chatctx/internal/provider/anthropic" // registers itself
