package cli

import (
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
)

func init() { lookGroups = append(lookGroups, labelLooks) }

func labelLooks() map[string]look {
	return map[string]look{
		"labels.add": as(func(r *run, in *operation.NewLabel, out contract.Named) {
			r.printf("%s is a label of %s\n", clean(in.Label), named(out.Title, out.Context))
		}).toEach("label"),
		"labels.remove": as(func(r *run, in *operation.OldLabel, out contract.Named) {
			r.printf("took the label %s off %s\n", clean(in.Label), named(out.Title, out.Context))
		}).toEach("take the label off"),
		"labels.list": as(func(r *run, _ *struct{}, out operation.LabelCount) {
			r.row(4, "%s  %s", clean(out.Label), count(out.Contexts, "conversation"))
		}).orNone(func(r *run) { r.note("no labels yet: %s", r.onStore("label add NAME CTX")) }),
	}
}
