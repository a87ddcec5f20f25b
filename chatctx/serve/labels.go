package serve

import (
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/contract"
)

func labelMethods() []*method {
	const in = "/contexts/{context}/labels"
	return []*method{
		define("labels.list", "GET /labels", Read, "list the labels, with the number of conversations that have each", listLabels),
		define("labels.add", "POST "+in, Write, "give a conversation a label; pinned and archived are labels", addLabel),
		define("labels.remove", "POST "+in+"/{label}/remove", Write, "remove a label from a conversation", removeLabel),
	}
}

// counted is a label, and the number of conversations with it.
type counted struct {
	Label    string `json:"label"`
	Contexts int    `json:"contexts"`
}

func listLabels(r *request, _ *struct{}) (list[counted], error) {
	labels, err := r.store.Labels(r.ctx)
	if err != nil {
		return list[counted]{}, err
	}
	var items []counted
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		items = append(items, counted{label, labels[label]})
	}
	return listOf(items), nil
}

type labelParams struct {
	contextChange
	Label string `json:"label" doc:"the label"`
}

func addLabel(r *request, in *labelParams) (contract.Where, error) {
	return where(r.onContext(in.Context, func(b *chatctx.Batch) { b.Label(in.Label) }))
}

func removeLabel(r *request, in *labelParams) (contract.Where, error) {
	return where(r.onContext(in.Context, func(b *chatctx.Batch) { b.Unlabel(in.Label) }))
}
