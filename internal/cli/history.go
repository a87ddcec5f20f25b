package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
)

func historyCommands() []*command {
	moved := "operation, context, branch, messages, head, removed, added[{message, position}]"
	return []*command{
		{name: "rewind", does: "make a message the head, and take the later messages off the branch", scope: onBranch, run: in(doRewind),
			more: "undo brings everything back, so it does not ask.", json: moved, example: "chatctx rewind @-2"},
		{name: "drop", does: "take messages off the branch, with calls also their results", scope: onBranch, run: in(doDrop),
			more: "A range A..B takes the messages after A up to and including B.", json: moved, example: "chatctx drop @3"},
		{name: "clear", does: "empty the branch's history, its sessions and figures", scope: onBranch, run: in(doClear),
			json: moved, example: "chatctx clear --dry-run"},
		{name: "interrupt", does: "remove an unfinished turn from the branch, but keep the user's message", scope: onBranch, run: in(doInterrupt),
			more: "A finished turn stays. A running answer is stopped first; until it has ended, undo, redo, rewind, drop, clear and take on its branch, and branch rm, are refused (5), so that it stays in its place.", json: moved, example: "chatctx interrupt"},
		{name: "pick", does: "put messages of another branch at the end of this one", scope: onBranch, run: in(doPick),
			more: "REFs and ranges A..B are read on BRANCH. A call takes its results along; messages that this branch has already are copied.",
			json: moved, example: "chatctx pick trains @5 @6"},
		{name: "merge", does: "put the messages of another branch since the common ancestor at the end of this one", scope: onBranch, run: in(doMerge),
			more: "Messages that were merged or picked before are not brought again: a second merge brings those that have come since, and says so if there are none. A call that waits here as a copy keeps its own decision and result.",
			json: moved, example: `chatctx merge trains --summary "Trains take 9 hours; we fly."`},
		{name: "diff", does: "show the differences of two branches, turn by turn, with the changed words", scope: onContext, run: in(doDiff), paged: true,
			more: "One BRANCH is compared with the active one. - is the first, + the second.",
			json: "ancestor, only_a[message], only_b[message]; a, b, context", example: "chatctx diff main trains"},
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

// moved reports a changed history. format says what was done to it.
func (r *run) moved(c *chatctx.Committed, format string, args ...any) error {
	m := c.Last()
	head := "it is empty now"
	if m.Messages > 0 {
		head = fmt.Sprintf("its head is %s, #%d", short(m.Head), m.Messages)
	}
	return r.made(c, contract.MovedOf(c), "%s; %s", fmt.Sprintf(format, args...), head)
}

type rewindIn struct {
	Ref record.Ref `arg:"REF"`
	dryRunFlag
	yesFlag
}

func doRewind(r *run, in *rewindIn) error {
	if in.DryRun {
		return r.dryRunHistory(func(snap *chatctx.Snapshot) ([]int, error) {
			e, err := snap.Place(r.ctx, in.Ref)
			if err != nil {
				return nil, err
			}
			return positions(e.Position+1, snap.Len()), nil
		})
	}
	c, err := r.change(func(b *chatctx.Batch) { b.Rewind(in.Ref) })
	if err != nil {
		return err
	}
	return r.moved(c, "rewound %s by %s", placed(c), count(c.Last().Removed, "message"))
}

type dropIn struct {
	Refs []record.Ref `arg:"REF…"`
	dryRunFlag
	yesFlag
}

func doDrop(r *run, in *dropIn) error {
	if in.DryRun {
		return r.dryRunDrop(in.Refs)
	}
	c, err := r.change(func(b *chatctx.Batch) { b.Drop(in.Refs...) })
	if err != nil {
		return err
	}
	return r.moved(c, "took %s off %s", count(c.Last().Removed, "message"), placed(c))
}

type clearIn struct {
	dryRunFlag
	yesFlag
}

func doClear(r *run, in *clearIn) error {
	if in.DryRun {
		return r.dryRunHistory(func(snap *chatctx.Snapshot) ([]int, error) { return positions(1, snap.Len()), nil })
	}
	c, err := r.change(func(b *chatctx.Batch) { b.Clear() })
	if err != nil {
		return err
	}
	return r.moved(c, "cleared %s: %s", placed(c), count(c.Last().Removed, "message"))
}

type interruptIn struct {
	All bool `flag:"all" doc:"the user's message too"`
	dryRunFlag
	yesFlag
}

func doInterrupt(r *run, in *interruptIn) error {
	if in.DryRun {
		return r.dryRunInterrupt(in.All)
	}
	ran, err := r.answering()
	if err != nil {
		return err
	}
	c, err := r.change(func(b *chatctx.Batch) { b.Interrupt(chatctx.InterruptOptions{Question: in.All}) })
	if err != nil {
		return err
	}
	if c.Last().Removed == 0 && ran {
		return r.moved(c, "stopped the answer on %s; nothing of it was stored", placed(c))
	}
	if c.Last().Removed == 0 {
		return r.moved(c, "no unfinished answer stands on %s", placed(c))
	}
	return r.moved(c, "took the unfinished turn off %s: %s", placed(c), count(c.Last().Removed, "message"))
}

// dryRunHistory says how many messages a command would take off the branch.
func (r *run) dryRunHistory(removed func(*chatctx.Snapshot) ([]int, error)) error {
	c, snap, err := r.snapshot()
	if err != nil {
		return err
	}
	gone, err := removed(snap)
	if err != nil {
		return err
	}
	n, ends := len(gone), snap.Ending(gone)
	return r.emit(struct {
		DryRun bool `json:"dry_run"`
		where
		Removed int `json:"removed"`
	}{true, where{Context: c.ID, Branch: snap.Info.Name, Affected: ends}, n}, func() {
		r.printf("would take %s off %s\n", count(n, "message"), clean(snap.Info.Name))
		for _, s := range ends {
			r.note("the summary of the messages %d to %d would no longer stand: those that stay would be sent themselves", s.From, s.To)
		}
	})
}

// positions returns the positions from one to another, both included.
func positions(from, to int) []int {
	var out []int
	for ; from <= to; from++ {
		out = append(out, from)
	}
	return out
}

// dryRunDrop counts the messages that REFs name and the results that would go with their calls.
func (r *run) dryRunDrop(refs []record.Ref) error {
	return r.dryRunHistory(func(snap *chatctx.Snapshot) ([]int, error) {
		gone := map[int]bool{}
		calls := map[string]bool{}
		first := snap.Len() + 1
		for _, ref := range refs {
			named, err := r.named(snap, ref)
			if err != nil {
				return nil, err
			}
			for _, e := range named {
				gone[e.Position] = true
				for i := range e.Calls {
					calls[e.Calls[i].ID] = true
					first = min(first, e.Position)
				}
			}
		}
		if len(calls) == 0 {
			return slices.Sorted(maps.Keys(gone)), nil
		}
		for e, err := range snap.Entries(r.ctx, first, 0) {
			if err != nil {
				return nil, err
			}
			if e.Result != nil && calls[e.Result.RequestID] {
				gone[e.Position] = true
			}
		}
		return slices.Sorted(maps.Keys(gone)), nil
	})
}

// named returns the messages of the branch that a REF or a range names.
func (r *run) named(snap *chatctx.Snapshot, ref record.Ref) ([]*chatctx.Entry, error) {
	part, err := snap.Range(r.ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case part == nil:
		e, err := snap.Place(r.ctx, ref)
		return []*chatctx.Entry{e}, err
	case part.Snapshot != snap:
		return nil, &chatctx.RefError{Kind: "message", Ref: string(ref), Branch: snap.Info.Name, On: part.Snapshot.Info.Name}
	case part.To < part.From:
		return nil, chatctx.NotFound("message in the range", string(ref))
	}
	return snap.Page(r.ctx, part.From, part.To)
}

type pickIn struct {
	Branch string       `arg:"BRANCH"`
	Refs   []record.Ref `arg:"REF…"`
}

func doPick(r *run, in *pickIn) error {
	c, err := r.change(func(b *chatctx.Batch) { b.Pick(in.Branch, in.Refs...) })
	if err != nil {
		return err
	}
	return r.moved(c, "picked %s from %s for %s", count(len(c.Last().Placed), "message"), clean(in.Branch), placed(c))
}

type mergeIn struct {
	Branch  string `arg:"BRANCH"`
	Append  bool   `flag:"append" doc:"put its messages at the end, which is the default"`
	Summary string `flag:"summary" doc:"put one message with this {TEXT} instead, which links to where it came from; - for standard input"`
	rawFlag
}

func doMerge(r *run, in *mergeIn) error {
	var o chatctx.MergeOptions
	if in.Summary != "" {
		if in.Append {
			return usagef("merge takes --append or --summary, not both")
		}
		text, err := r.text(in.Summary, in.rawFlag)
		if err != nil {
			return err
		}
		if text == "" {
			return usagef("the summary is empty")
		}
		o.Summary = text
	}
	c, err := r.change(func(b *chatctx.Batch) { b.Merge(in.Branch, o) })
	if err != nil {
		return err
	}
	if c.Operation == "" {
		return r.moved(c, "%s has nothing that %s lacks", clean(in.Branch), placed(c))
	}
	return r.moved(c, "merged %s from %s into %s", count(len(c.Last().Placed), "message"), clean(in.Branch), placed(c))
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

// dryRunInterrupt counts the messages that interrupt would take off.
func (r *run) dryRunInterrupt(question bool) error {
	return r.dryRunHistory(func(snap *chatctx.Snapshot) ([]int, error) {
		n, end := 0, snap.Len()
		open := false
		answered := map[string]bool{}
		for e, err := range snap.Entries(r.ctx, snap.Len(), 1) {
			if err != nil {
				return nil, err
			}
			if e.Role == "user" {
				if n == 0 || open {
					if question {
						n++
					}
					return positions(end-n+1, end), nil
				}
				return nil, nil
			}
			if e.Result != nil {
				answered[e.Result.RequestID] = true
			}
			open = open || e.Unfinished || n == 0 && e.Role == "tool"
			for i := range e.Calls {
				open = open || !answered[e.Calls[i].ID]
			}
			n++
		}
		return nil, nil
	})
}
