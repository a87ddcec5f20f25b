package operation

import (
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/view"
)

func init() {
	Register(Group{Heading: "Conversations", Command: "label", Does: "give conversations labels, and take them off", Of: labelOperations})
}

func labelOperations() []*Operation {
	const in, filters = "/contexts/{context}/labels", "Filters, which are those of ls, take the place of names."
	return []*Operation{
		Define("labels.add", "POST "+in, Write, "give conversations a label", addLabel).
			As("label add", "chatctx label add work holiday").With(filters + " pinned and archived are labels that ls knows.").ForEach(),
		Define("labels.remove", "POST "+in+"/{label}/remove", Write, "take a label off conversations", removeLabel).
			As("label rm", "chatctx label rm work holiday").With(filters).ForEach(),
		Define("labels.list", "GET /labels", Read, "list the labels, and how many conversations have each", listLabels).As("label ls", "chatctx label ls"),
	}
}

// LabelCount is a label, and the number of conversations with it.
type LabelCount struct {
	Label    string `json:"label"`
	Contexts int    `json:"contexts"`
}

func listLabels(r *Request, _ *struct{}) (List[LabelCount], error) {
	labels, err := view.Labels(r.Ctx, base.Of(r.Store))
	return ListEach(slices.Sorted(maps.Keys(labels)), err, func(label string) LabelCount { return LabelCount{label, labels[label]} })
}

// NewLabel is the label that a conversation gets.
type NewLabel struct {
	ContextChange
	Label string `json:"label" arg:"LABEL" doc:"the label; pinned and archived are labels too"`
}

// Concerned returns the conversations that lack the label.
func (in *NewLabel) Concerned(_ *Request, chosen []*record.ContextInfo, _ bool) ([]*record.ContextInfo, error) {
	return slices.DeleteFunc(chosen, func(i *record.ContextInfo) bool { return slices.Contains(i.Labels, in.Label) }), nil
}

func addLabel(r *Request, in *NewLabel) (contract.Named, error) {
	return namedDone(r.onContext(in.Context, func(b *chatctx.Batch) { b.Label(in.Label) }))
}

// OldLabel is the label that a conversation has.
type OldLabel struct {
	ContextChange
	Label string `json:"label" arg:"LABEL" doc:"the label"`
}

// Concerned returns the conversations that have the label. One that is named and does not have it is told so.
func (in *OldLabel) Concerned(_ *Request, chosen []*record.ContextInfo, filtered bool) ([]*record.ContextInfo, error) {
	return slices.DeleteFunc(chosen, func(i *record.ContextInfo) bool { return filtered && !slices.Contains(i.Labels, in.Label) }), nil
}

func removeLabel(r *Request, in *OldLabel) (contract.Named, error) {
	return namedDone(r.onContext(in.Context, func(b *chatctx.Batch) { b.Unlabel(in.Label) }))
}
