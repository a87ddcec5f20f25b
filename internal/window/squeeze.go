package window

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
)

const squeezeSystem = "You shorten notes on a conversation for a model that will go on with it. Keep names, identifiers, addresses, numbers, decisions, constraints and errors word for word. " +
	"Leave out what is said twice. Answer with the shortened notes alone."

// Squeeze returns an Enhancer that lets a model shorten the digests, one call for each, if Options.Squeeze is set and the draft still does not fit. If the
// answer is not whole, longer or an error, the digest stays, with a note that says why. A shortened digest stays in the draft's session and is used again. With a
// nil Completer it only notes which digests a model would shorten, to look at a request before it is sent.
func Squeeze(w *Window, o Options, c enhancer.Completer) enhancer.Enhancer {
	return enhancer.Func("squeeze", func(ctx context.Context, d *chatctx.Draft) error {
		if err := w.Measure(ctx, d); err != nil || !o.Squeeze || w.Over(d) == 0 {
			return err
		}
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
			answer, err := squeezed(ctx, w, c, &all[i])
			if ctx.Err() != nil && answer == nil {
				return ctx.Err()
			}
			if err != nil {
				d.Notes = append(d.Notes, chatctx.Note{Step: "squeeze", What: "a digest stays as it was: " + err.Error()})
				continue
			}
			if changed, err = true, w.keepSqueezed(ctx, d, all, answer); err != nil {
				return err
			}
		}
		if changed {
			s := steps{w: w, d: d, o: o}
			s.expand()
			d.Session.Digests = all
			s.digests()
		}
		return nil
	})
}

// squeezed asks for a shorter form of a digest, and puts it in its place.
func squeezed(ctx context.Context, w *Window, c enhancer.Completer, g *branch.Digest) (*Answer, error) {
	have := w.Counter.Text(g.Text)
	answer, err := Ask(ctx, w.Context, c, Question{Kind: "digest", System: squeezeSystem, Prompt: strings.TrimSpace(strings.TrimPrefix(g.Text, HistoryMark)), Limit: have / 2, About: g.Of,
		Fits: func(text string) error {
			switch n := w.Counter.Text(digestOf(text)); {
			case digestOf(text) == digestOf(""):
				return errors.New("the model answered nothing")
			case n >= have:
				return fmt.Errorf("the model's answer is %d tokens, not less than %d", n, have)
			}
			return nil
		}})
	if err != nil {
		return nil, err
	}
	g.Text, g.Squeezed, g.Message = digestOf(answer.Text), true, answer.Paid.ID
	return answer, nil
}

// digestOf returns the text of a digest from a model's answer.
func digestOf(text string) string {
	return HistoryMark + " " + strings.TrimSpace(strings.ReplaceAll(text, HistoryMark, ""))
}

// keepSqueezed keeps an answer, and the digests with it.
func (w *Window) keepSqueezed(ctx context.Context, d *chatctx.Draft, all []branch.Digest, a *Answer) error {
	if w.Keep == nil {
		w.paid = append(w.paid, a.Paid)
		return nil
	}
	session := d.Session
	session.Digests = slices.Clone(all)
	return w.Keep(ctx, session, a.Paid)
}
