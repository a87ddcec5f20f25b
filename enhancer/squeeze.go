package enhancer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

const squeezeSystem = "You shorten notes on a conversation for a model that will go on with it. Keep names, identifiers, addresses, numbers, decisions, constraints and errors word for word. " +
	"Leave out what is said twice. Answer with the shortened notes alone."

// Squeeze returns an Enhancer that lets a model shorten the digests, one call for each, if Options.Squeeze is set and the draft still does not fit. If the
// answer is longer, empty or an error, the digest stays, with a note that says why. A shortened digest stays in the draft's session and is used again. With a
// nil Completer it only notes which digests a model would shorten, to look at a request before it is sent.
func Squeeze(w *Window, o Options, c Completer) Enhancer {
	return Func("squeeze", func(ctx context.Context, d *chatctx.Draft) error {
		if err := w.Measure(ctx, d); err != nil || !o.Squeeze || w.Over(d) == 0 {
			return err
		}
		s := steps{w: w, d: d, o: o}
		all := slices.Clone(d.Session.Digests)
		changed := false
		for i := range all {
			if all[i].Squeezed || w.behind[all[i].Of] == nil {
				continue
			}
			if c == nil {
				d.Notes = append(d.Notes, chatctx.Note{Step: "squeeze", What: fmt.Sprintf("the digest of the messages %d to %d is to be shortened by a model when this is sent", all[i].From, all[i].To)})
				continue
			}
			text, paid, err := squeezed(ctx, w, c, all[i].Text)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				d.Notes = append(d.Notes, chatctx.Note{Step: "squeeze", What: "a digest stays as it was: " + err.Error()})
				continue
			}
			w.paid = append(w.paid, paid)
			all[i].Text, all[i].Squeezed, all[i].Message, changed = text, true, paid.ID, true
		}
		if changed {
			s.expand()
			d.Session.Digests = all
			s.digests()
		}
		return nil
	})
}

// squeezed asks for a shorter form of a digest. paid records the cost.
func squeezed(ctx context.Context, w *Window, c Completer, digest string) (short string, paid *pool.Message, err error) {
	have := w.Counter.Text(digest)
	body := strings.TrimSpace(strings.TrimPrefix(digest, HistoryMark))
	answer, err := c.Complete(ctx, squeezeSystem, body, have/2)
	if err != nil {
		return "", nil, err
	}
	said := strings.TrimSpace(strings.ReplaceAll(answer.Text, HistoryMark, ""))
	if said == "" {
		return "", nil, fmt.Errorf("the model answered nothing")
	}
	text := HistoryMark + " " + said
	if n := w.Counter.Text(text); n >= have {
		return "", nil, fmt.Errorf("the model's answer is %d tokens, not less than %d", n, have)
	}
	return text, answer.Paid("digest"), nil
}
