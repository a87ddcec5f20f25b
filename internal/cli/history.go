package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
)

func init() { lookGroups = append(lookGroups, historyLooks) }

func historyCommands() []*command {
	return []*command{{name: "rewind"}, {name: "drop"}, {name: "clear"}, {name: "interrupt"}, {name: "pick"}, {name: "merge"}, {name: "diff"},
		{name: "tag", does: "give a message a second name; without NAME, list the tags", scope: onBranch, run: in(doTag),
			more: "A tag is unique in its conversation. Without REF the head gets it.",
			json: "operation, context, branch, tag, message; in a list: tag, message, a line each", example: "chatctx tag good @-1",
			subs: []*command{
				{name: "ls", does: "list the tags, as tag alone does", scope: onContext, do: listTags,
					json: "tag, message; context; a line each", example: "chatctx tag ls"},
				{name: "rm", does: "remove a tag", scope: onContext, run: in(doTagRm),
					json: "operation, context, branch, tag", example: "chatctx tag rm good"},
			}},
	}
}

func historyLooks() map[string]look {
	return map[string]look{
		"history.rewind": as(func(r *run, _ *operation.Rewinding, v contract.Moved) { r.moved(v, "rewound {branch} by {removed}") }),
		"history.drop":   as(func(r *run, _ *operation.Dropping, v contract.Moved) { r.moved(v, "took {removed} off {branch}") }),
		"history.clear":  as(func(r *run, _ *operation.Clearing, v contract.Moved) { r.moved(v, "cleared {branch}: {removed}") }),
		"history.interrupt": as(func(r *run, _ *operation.Interrupting, v operation.Interrupted) {
			switch {
			case v.Removed > 0 || v.DryRun:
				r.moved(v.Moved, "took the unfinished turn off {branch}: {removed}")
			case v.Ran:
				r.moved(v.Moved, "stopped the answer on {branch}; nothing of it was stored")
			default:
				r.moved(v.Moved, "no unfinished answer stands on {branch}")
			}
		}),
		"history.pick": as(func(r *run, in *operation.Picking, v contract.Moved) {
			r.moved(v, "picked {added} from {from} for {branch}", in.From)
		}),
		"history.merge": preparing(readSummary, as(func(r *run, in *operation.Merging, v contract.Moved) {
			if v.Operation == "" {
				r.moved(v, "{from} has nothing that {branch} lacks", in.From)
				return
			}
			r.moved(v, "merged {added} from {from} into {branch}", in.From)
		})),
		"diff": preparing(func(_ *run, in *operation.Differing) error {
			if in.B = in.Other; in.B == "" {
				in.A, in.B = "", in.A
			}
			return nil
		}, as(func(r *run, _ *operation.Differing, d contract.Difference) { r.printDiff(d) })),
	}
}

// readSummary reads the summary of a merge, which may stand on standard input.
func readSummary(r *run, in *operation.Merging) (err error) {
	if in.Summary == "" {
		return nil
	}
	if in.Append {
		return usagef("merge takes --append or --summary, not both")
	}
	if in.Summary, err = r.text(in.Summary, rawFlag(in.RawInput)); err == nil && in.Summary == "" {
		err = usagef("the summary is empty")
	}
	return err
}

// moved prints a changed history. did says what was done, with words in braces for what it was done to; from is the branch where messages came from.
func (r *run) moved(v contract.Moved, did string, from ...string) {
	if v.DryRun {
		r.printf("would take %s off %s\n", count(v.Removed, "message"), clean(v.Branch))
		for _, s := range v.Affected {
			r.note("the summary of the messages %d to %d would no longer stand: those that stay would be sent themselves", s.From, s.To)
		}
		return
	}
	head := "it is empty now"
	if v.Messages > 0 {
		head = fmt.Sprintf("its head is %s, #%d", short(*v.Head), v.Messages)
	}
	words := strings.NewReplacer("{branch}", placed(v.Done), "{removed}", count(v.Removed, "message"), "{added}", count(len(v.Added), "message"), "{from}", clean(strings.Join(from, "")))
	r.printf("%s; %s\n", words.Replace(did), head)
}

// tagVerbs are words that are typed as commands and would be taken for the name of a tag, with what was meant.
var tagVerbs = map[string]string{
	"list": "chatctx tag ls lists them", "show": "chatctx tag ls lists them", "help": "chatctx help tag explains it", "add": "chatctx tag NAME REF adds one",
	"set": "chatctx tag NAME REF adds one", "mv": "chatctx tag rm TAG, then chatctx tag NAME REF", "rename": "chatctx tag rm TAG, then chatctx tag NAME REF",
	"remove": "chatctx tag rm TAG removes one", "delete": "chatctx tag rm TAG removes one", "del": "chatctx tag rm TAG removes one",
}

type tagIn struct {
	Name string     `arg:"[NAME]"`
	Ref  record.Ref `arg:"[REF]"`
}

func doTag(r *run, in *tagIn) error {
	if in.Name == "" {
		return listTags(r)
	}
	ref := in.Ref
	if ref == "" {
		if instead := tagVerbs[in.Name]; instead != "" {
			return &usageError{fmt.Sprintf("there is no command tag %s: %s", in.Name, instead), "to call the head so: " + r.again("tag "+in.Name+" @")}
		}
		ref = "@"
	}
	c, err := r.change(func(b *chatctx.Batch) { b.Tag(in.Name, ref) })
	if err != nil {
		return err
	}
	cc, err := r.st.Context(r.ctx, c.Context.String())
	if err != nil {
		return err
	}
	tags, err := cc.Tags(r.ctx)
	if err != nil {
		return err
	}
	id := tags[in.Name]
	return r.made(c, tagJSON{Where: whereOf(c), Tag: in.Name, Message: &id}, "tagged %s of %s as %s", short(id), placed(c), clean(in.Name))
}

func listTags(r *run) error {
	c, err := r.conversation()
	if err != nil {
		return err
	}
	tags, err := c.Tags(r.ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		v := map[string]any{"context": c.ID, "tag": name, "message": tags[name]}
		if err := r.emit(v, func() { r.row(4, "%s  %s", r.paint(yellow, short(tags[name])), clean(name)) }); err != nil {
			return err
		}
	}
	if len(tags) == 0 {
		r.note("no tags; chatctx tag NAME [REF] sets one")
	}
	return nil
}

type tagRmIn struct {
	Tag string `arg:"TAG"`
}

func doTagRm(r *run, in *tagRmIn) error {
	c, err := r.change(func(b *chatctx.Batch) { b.Untag(in.Tag) })
	if err != nil {
		return err
	}
	return r.made(c, tagJSON{Where: whereOf(c), Tag: in.Tag}, "removed the tag %s in %s", clean(in.Tag), titled(c.Title, c.Context))
}
