package turn

import (
	"context"

	"github.com/chatctx/chatctx/enhancer"
)

// Count asks the provider's own counter how large the request is that Send would send, in tokens. Errors to test for are wire.ErrNoCount and those of a request.
func (t *Turn) Count(ctx context.Context) (int64, error) {
	req, err := t.request(ctx, t.Branch)
	if err != nil {
		return 0, err
	}
	return req.client.Count(ctx, req.wire)
}

// Compact compacts the branch where that is due by its settings, with a summary by the model that they name. nil: it was not due, or there is nothing to leave
// out. It is meant to be called after a Send; messages may arrive meanwhile.
func (t *Turn) Compact(ctx context.Context) (*enhancer.Compacted, error) {
	d, err := t.Context.Draft(ctx, t.Branch)
	if err != nil {
		return nil, err
	}
	d.Settings = t.settings(d.Settings)
	o, err := enhancer.OptionsOf(d.Settings, t.getenv)
	if err != nil {
		return nil, err
	}
	if err := enhancer.Exclude().Enhance(ctx, d); err != nil {
		return nil, err
	}
	w := o.Window(t.Context)
	if err := w.Measure(ctx, d); err != nil || !enhancer.Due(w, o, d) {
		return nil, err
	}
	model := o.CompactModel
	if model == "" {
		model = o.Model
	}
	done, err := enhancer.Compact(ctx, t.Context, d.Branch, o, enhancer.Request{Completer: t.completer(d.Settings), Model: model})
	if err == enhancer.ErrNothingToCompact {
		return nil, nil
	}
	return done, err
}
