package cli

import (
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
)

type labelIn struct {
	Label    string   `arg:"LABEL"`
	Contexts []string `arg:"[CTX…]"`
	dryRunFlag
	whichFlags
}

func doLabelAdd(r *run, in *labelIn) error {
	lacks := func(i *chatctx.ContextInfo) bool { return !slices.Contains(i.Labels, in.Label) }
	return r.relabel(in, "label", clean(in.Label)+" is a label of", lacks, func(b *chatctx.Batch) { b.Label(in.Label) })
}

func doLabelRm(r *run, in *labelIn) error {
	has := func(i *chatctx.ContextInfo) bool { return slices.Contains(i.Labels, in.Label) || !in.given() }
	return r.relabel(in, "take the label off", "took the label "+clean(in.Label)+" off", has, func(b *chatctx.Batch) { b.Unlabel(in.Label) })
}

// relabel changes the labels of the contexts that the command line selects, except those where nothing would change.
func (r *run) relabel(in *labelIn, what, did string, changes func(*chatctx.ContextInfo) bool, change func(*chatctx.Batch)) error {
	if err := r.needsNames(in.Contexts, in.whichFlags, "chatctx label add work holiday"); err != nil {
		return err
	}
	if _, err := r.changer(in.dryRunFlag); err != nil {
		return err
	}
	all, err := r.chosen(in.Contexts, in.whichFlags)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(i *chatctx.ContextInfo) bool { return !changes(i) })
	if in.DryRun {
		return r.wouldDo(all, what)
	}
	for _, info := range all {
		b := r.st.Begin(info.ID.String(), "")
		change(b)
		c, err := b.Commit(r.ctx)
		if err != nil {
			return err
		}
		err = r.emit(namedContext{Where: whereOf(c), Title: c.Title}, func() {
			r.printf("%s %s\n", did, named(c.Title, c.Context))
			r.note("take it back: %s", r.undoOf(c))
		})
		if err != nil {
			return err
		}
	}
	if len(all) == 0 {
		r.note("nothing was changed")
	}
	return nil
}

// labelJSON is a label in a list.
type labelJSON struct {
	Label    string `json:"label"`
	Contexts int    `json:"contexts"`
}

func doLabelLs(r *run) error {
	st, err := r.reader()
	if err != nil {
		return err
	}
	all, err := st.Labels(r.ctx)
	if err != nil {
		return err
	}
	for _, l := range slices.Sorted(maps.Keys(all)) {
		if err := r.emit(labelJSON{l, all[l]}, func() { r.row(4, "%s  %s", clean(l), count(all[l], "conversation")) }); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		r.note("no labels yet: %s", r.onStore("label add NAME CTX"))
	}
	return nil
}
