// Package tokens counts what a model reads, without asking a provider.
//
//	n := tokens.Count("gpt-4o", "How many tokens is this?")
//	for _, m := range draft.Messages {
//		n += tokens.Message("gpt-4o", m.Message)
//	}
//	if n > tokens.Budget("gpt-4o") {
//		fmt.Println("too long by", n-tokens.Budget("gpt-4o"))
//	}
//
// Texts are counted with the model's own vocabulary where it is known, else with that of the nearest; images and documents by the provider's formula. A
// provider's own figures differ a little. All functions are safe for concurrent use.
package tokens

import (
	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/pool"
)

// Count returns how many tokens of a model a text has. A model that is not known counts as one of the newest.
func Count(model, text string) int { return tokens.ForModel(model).Encoding.Count(text) }

// Message returns the tokens of the parts of a message that are sent, with its overheads; artifacts that are not read count as nothing. A message that is never
// sent has 0.
func Message(model string, m *pool.Message) int {
	return tokens.NewCounter(model, nil, nil).Message(m, nil)
}

// Budget returns how many tokens a request to a model may have if nothing else is set; 0 if the model is not known.
func Budget(model string) int { return tokens.ForModel(model).Budget() }

// UseOfflineLoader makes tiktoken-go read its vocabularies from the program wherever that library is asked, for the whole process. Without it, the library fetches
// them from the network. Counting here needs no such call and changes nothing of the library's, so it is for programs alone: once, before anything asks the library.
func UseOfflineLoader() { tiktoken.SetBpeLoader(loader.NewOfflineLoader()) }
