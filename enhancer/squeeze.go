package enhancer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
)

const squeezeSystem = "You shorten notes on a conversation for a model that will go on with it. Keep names, identifiers, addresses, numbers, decisions, constraints and errors word for word. " +
	"Leave out what is said twice. Answer with the shortened notes alone."

// Squeeze has a model shorten the digests, one call each, where Options.Squeeze allows it and the draft still does not fit. What comes back longer, empty or not at all changes
// nothing, with a note that says why. A shortened digest stays in the draft's session and is used again. A nil Completer squeezes nothing.
func Squeeze(w *Window, o Options, c Completer) Enhancer {
	return Func("squeeze", func(ctx context.Context, d *chatctx.Draft) error {
		if err := w.Measure(ctx, d); err != nil || !o.Squeeze || c == nil || w.Over(d) == 0 {
			return err
		}
		s := steps{w: w, d: d, o: o}
		all := slices.Clone(d.Session.Digests)
		changed := false
		for i := range all {
			if all[i].Squeezed || w.behind[all[i].Of] == nil {
				continue
			}
			text, err := squeezed(ctx, w, c, all[i].Text)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				d.Notes = append(d.Notes, chatctx.Note{Step: "squeeze", What: "a digest stays as it was: " + err.Error()})
				continue
			}
			all[i].Text, all[i].Squeezed, changed = text, true, true
		}
		if changed {
			s.expand()
			d.Session.Digests = all
			s.digests()
		}
		return nil
	})
}

// squeezed asks for a shorter form of a digest.
func squeezed(ctx context.Context, w *Window, c Completer, digest string) (string, error) {
	have := w.Counter.Text(digest)
	body := strings.TrimSpace(strings.TrimPrefix(digest, HistoryMark))
	answer, err := c.Complete(ctx, squeezeSystem, body, have/2)
	if err != nil {
		return "", err
	}
	answer = strings.TrimSpace(strings.ReplaceAll(answer, HistoryMark, ""))
	if answer == "" {
		return "", fmt.Errorf("the model answered nothing")
	}
	text := HistoryMark + " " + answer
	if n := w.Counter.Text(text); n >= have {
		return "", fmt.Errorf("the model's answer is %d tokens, not less than %d", n, have)
	}
	return text, nil
}
