// Package glossary is a step on the way to a provider: it explains the words of a trade that a conversation uses.
package glossary

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
)

// Name is the step's name in reports.
const Name = "glossary"

// New returns an Enhancer that adds the meaning of each word that a message of the draft has to the draft's user prompt. The store does not change.
func New(meanings map[string]string) enhancer.Enhancer {
	return enhancer.Func(Name, func(_ context.Context, d *chatctx.Draft) error {
		for _, word := range slices.Sorted(maps.Keys(meanings)) { // in order, so that the same draft gives the same bytes
			line := word + ": " + meanings[word]
			used := slices.ContainsFunc(d.Messages, func(m *chatctx.DraftMessage) bool { return strings.Contains(m.Text(), word) })
			if !used || strings.Contains(d.Prompt, line) { // a second run changes nothing
				continue
			}
			d.Prompt = strings.TrimSpace(d.Prompt + "\n" + line)
			d.Notes = append(d.Notes, chatctx.Note{Step: Name, What: "explains " + word})
		}
		return nil
	})
}
