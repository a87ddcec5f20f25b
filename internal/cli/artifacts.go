package cli

import (
	"strings"

	"github.com/chatctx/chatctx/internal/operation"
)

func init() { lookGroups = append(lookGroups, artifactLooks) }

func artifactLooks() map[string]look {
	list := as(func(r *run, _ *operation.ArtifactListing, a operation.Artifact) {
		from := strings.TrimSpace(a.Tool + " " + a.MediaType + " " + a.Name)
		r.printf("%s  %-6s %9s  %s  %s\n", a.Key[:16], a.Kind, size(int64(a.Size)), r.paint(yellow, short(a.Message)), cut(oneLine(from), max(r.con.width-48, 10)))
	})
	list.none = func(r *run, in any) {
		r.note("%s has no large outputs and no attachments", clean(in.(*operation.ArtifactListing).Branch))
	}
	garbles := func(r *run, v *operation.ArtifactContent) bool { return v.Text == nil && r.con.tty && !r.json() }
	show := as(func(r *run, _ *operation.ArtifactKey, v operation.ArtifactContent) {
		switch {
		case garbles(r, &v):
		case v.Text == nil, !r.con.tty:
			r.con.out.Write(v.Bytes)
		default:
			r.printf("%s\n", clean(strings.TrimSuffix(*v.Text, "\n")))
		}
	})
	show.then = func(r *run, _, out any) error {
		v := out.(operation.ArtifactContent)
		if !garbles(r, &v) {
			return nil
		}
		return &hinted{usagef("the artifact is binary (%s) and would garble the terminal", size(int64(v.Size))), "send it to a file: " + r.again("artifact show "+v.Key[:16]) + " > FILE"}
	}
	return map[string]look{"artifacts.list": list, "artifacts.show": preparing(func(_ *run, in *operation.ArtifactKey) error {
		if len(strings.TrimSpace(in.Key)) < 4 {
			return usagef("the key %q is too short: give at least 4 digits", in.Key)
		}
		return nil
	}, show)}
}
