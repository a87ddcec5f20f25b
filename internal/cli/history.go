package cli

import (
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
)

func init() { lookGroups = append(lookGroups, historyLooks) }

func historyCommands() []*command {
	return []*command{{name: "rewind"}, {name: "drop"}, {name: "clear"}, {name: "interrupt"}, {name: "pick"}, {name: "merge"}, {name: "diff"},
		{name: "tag", subs: []*command{{name: "ls"}, {name: "rm"}}},
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
		"tags.set": preparing(checkTag, as(func(r *run, _ *operation.NewTag, v contract.Tag) {
			r.printf("tagged %s of %s as %s\n", short(*v.Message), placed(r.done), clean(v.Tag))
		})),
		"tags.list": as(func(r *run, _ *operation.Conversation, v contract.Tag) {
			r.row(4, "%s  %s", r.paint(yellow, short(*v.Message)), clean(v.Tag))
		}).
			orNone(func(r *run) { r.note("no tags; chatctx tag NAME [REF] sets one") }),
		"tags.remove": as(func(r *run, _ *operation.OldTag, v contract.Tag) {
			r.printf("removed the tag %s in %s\n", clean(v.Tag), titled(r.done.Title, r.done.Context))
		}),
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
	words := strings.NewReplacer("{branch}", placed(r.done), "{removed}", count(v.Removed, "message"), "{added}", count(len(v.Added), "message"), "{from}", clean(strings.Join(from, "")))
	r.printf("%s; %s\n", words.Replace(did), head)
}

// tagVerbs are words that are typed as commands and would be taken for the name of a tag, with what was meant.
var tagVerbs = map[string]string{
	"list": "chatctx tag ls lists them", "show": "chatctx tag ls lists them", "help": "chatctx help tag explains it", "add": "chatctx tag NAME REF adds one",
	"set": "chatctx tag NAME REF adds one", "mv": "chatctx tag rm TAG, then chatctx tag NAME REF", "rename": "chatctx tag rm TAG, then chatctx tag NAME REF",
	"remove": "chatctx tag rm TAG removes one", "delete": "chatctx tag rm TAG removes one", "del": "chatctx tag rm TAG removes one",
}

// checkTag refuses what was meant as a command below tag, and puts the head in place of no message.
func checkTag(r *run, in *operation.NewTag) error {
	if in.Message != "" {
		return nil
	}
	if instead := tagVerbs[in.Tag]; instead != "" {
		return &usageError{fmt.Sprintf("there is no command tag %s: %s", in.Tag, instead), "to call the head so: " + r.again("tag "+in.Tag+" @")}
	}
	in.Message = "@"
	return nil
}
