package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"

	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/window"
)

// Count asks the provider's own counter how large the request is that Send would send, in tokens. Errors to test for are wire.ErrNoCount and those of a
// request.
func (t *Turn) Count(ctx context.Context) (int64, error) {
	req, err := t.withClient(ctx, t.Branch, nil)
	if err != nil {
		return 0, err
	}
	return req.client.Count(ctx, req.wire)
}

// askFrom is the share of the limit from which the provider's own counter is asked before a request is sent.
const askFrom = 0.9

// within asks the provider for the size of a request that is close to the limit. If it is over the limit, within makes the request again with a proportionally
// smaller budget. If the provider cannot say, the request stays.
func (t *Turn) within(ctx context.Context, req *Request, asides *asking) (*Request, error) {
	limit := req.Report.Limit
	if limit == 0 || float64(req.Report.After) < askFrom*float64(limit) {
		return req, nil
	}
	n, err := req.client.Count(ctx, req.wire)
	if err != nil || n <= int64(limit) {
		return req, ctx.Err()
	}
	smaller := *t
	smaller.Settings = maps.Clone(t.Settings)
	if smaller.Settings == nil {
		smaller.Settings = map[string]json.RawMessage{}
	}
	smaller.Settings["budget"] = json.RawMessage(strconv.Itoa(int(float64(req.made().Options.Budget) * float64(req.Report.After) / float64(n))))
	return smaller.withClient(ctx, req.Draft.Branch, asides)
}

// Compact compacts the branch if its settings say that it is due, with a summary by the model that they name. It returns nil if a compaction is not due or
// there is nothing to leave out. After a summary that was not usable (*enhancer.UnusableError) it returns nil until the session has grown. Call it after a Send; messages may arrive meanwhile.
func (t *Turn) Compact(ctx context.Context) (*window.Compacted, error) {
	d, err := t.Context.DraftIn(ctx, t.Branch, t.session)
	if err != nil {
		return nil, err
	}
	d.Settings = t.settings(d.Settings)
	if err := t.misled(d.Ignored, d.Settings); err != nil {
		return nil, err
	}
	o, err := t.options(ctx, d.Settings, true)
	if err != nil {
		return nil, err
	}
	by, asked := t.summariser(d.Settings), *d
	if err := window.Exclude().Enhance(ctx, d); err != nil {
		return nil, err
	}
	w := o.Window(t.Context)
	if err := w.Measure(ctx, d); err != nil || !window.Due(w, o, d) {
		return nil, err
	}
	if gaveUp, err := window.GaveUp(ctx, t.Context, by, &asked); gaveUp || err != nil {
		return nil, err
	}
	model := cmp.Or(o.CompactModel, o.Model)
	inForce, err := t.inForce(ctx)
	if err != nil {
		return nil, err
	}
	embedder, err := t.embedder(inForce)
	if err != nil {
		return nil, err
	}
	done, err := window.Compact(ctx, t.Context, d.Branch, o, window.Request{Provider: t.compactor(d.Settings), Completer: t.completer(d.Settings), Model: model, Embedder: embedder})
	if errors.Is(err, enhancer.ErrNothingToCompact) {
		return nil, nil
	}
	if err == nil {
		return done, nil
	}
	forgot := window.GiveUp(ctx, t.Context, by, &asked, err)
	if again := (*enhancer.UnusableError)(nil); errors.As(err, &again) && again.Again {
		return nil, forgot // it was reported when the model was asked
	}
	return nil, errors.Join(err, forgot)
}
