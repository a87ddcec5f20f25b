package operation

import (
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/contract"
)

func init() { Register(Group{Heading: "Conversations", Of: labelOperations}) }

func labelOperations() []*Operation {
	const in = "/contexts/{context}/labels"
	return []*Operation{
		Define("labels.list", "GET /labels", Read, "list the labels, with the number of conversations that have each", listLabels),
		Define("labels.add", "POST "+in, Write, "give a conversation a label; pinned and archived are labels", addLabel),
		Define("labels.remove", "POST "+in+"/{label}/remove", Write, "remove a label from a conversation", removeLabel),
	}
}

// counted is a label, and the number of conversations with it.
type counted struct {
	Label    string `json:"label"`
	Contexts int    `json:"contexts"`
}

func listLabels(r *Request, _ *struct{}) (List[counted], error) {
	labels, err := r.Store.Labels(r.Ctx)
	if err != nil {
		return List[counted]{}, err
	}
	var items []counted
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		items = append(items, counted{label, labels[label]})
	}
	return ListOf(items), nil
}

type labelParams struct {
	ContextChange
	Label string `json:"label" doc:"the label"`
}

func addLabel(r *Request, in *labelParams) (contract.Where, error) {
	return where(r.onContext(in.Context, func(b *chatctx.Batch) { b.Label(in.Label) }))
}

func removeLabel(r *Request, in *labelParams) (contract.Where, error) {
	return where(r.onContext(in.Context, func(b *chatctx.Batch) { b.Unlabel(in.Label) }))
}
