// Package gemini registers Gemini's generateContent as a provider with package adapter. A program imports it for that effect alone.
package gemini

import _ "github.com/chatctx/chatctx/internal/provider/gemini" // registers itself
