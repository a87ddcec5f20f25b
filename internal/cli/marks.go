package cli

import (
	"github.com/chatctx/chatctx/internal/operation"
)

func init() { lookGroups = append(lookGroups, markLooks) }

func markLooks() map[string]look {
	list := as(func(r *run, _ *operation.MarkList, v operation.Marked) {
		r.printf("%s  #%-5d %-9s %s\n", r.paint(yellow, short(v.Message)), v.Position, *v.Mark, cut(clean(v.Preview), max(r.con.width-30, 10)))
	})
	list.none = func(r *run, in any) {
		r.note("no message of %s is pinned or excluded", clean(in.(*operation.MarkList).Branch))
	}
	return map[string]look{
		"marks.list":    list,
		"marks.pin":     markedAs("pinned"),
		"marks.unpin":   markedAs("unpinned"),
		"marks.exclude": markedAs("excluded"),
		"marks.include": markedAs("included again"),
	}
}

// markedAs is the look of changed marks. did says what was done.
func markedAs(did string) look {
	return as(func(r *run, _ *operation.Marking, v operation.Marks) {
		switch {
		case v.DryRun:
			r.printf("would change %s\n", count(len(v.Messages), "message"))
		case v.Operation != "":
			r.printf("%s: %s of %s\n", did, count(len(v.Messages), "message"), placed(r.done))
		}
	})
}
