package operation

import (
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/tokens"
)

func init() { Register(Group{Heading: "The window", Of: markOperations}) }

func markOperations() []*Operation {
	const in, at = "/contexts/{context}", "/contexts/{context}/branches/{branch}"
	return []*Operation{
		Define("marks.set", "POST "+at+"/marks", Write, "pin messages, exclude them from requests, or remove their mark", setMarks),
		Define("marks.list", "GET "+in+"/marks", Read, "list the marked messages", listMarks),
		Define("marks.pin", "POST", Write, "keep messages in every request", marking(enhancer.Pinned, "")).As("pin", "chatctx pin @3").
			With("A pinned call keeps its results.").Alone("marks.list"),
		Define("marks.unpin", "POST", Write, "take the pin off messages", marking("", enhancer.Pinned)).As("unpin", "chatctx unpin @3"),
		Define("marks.exclude", "POST", Write, "leave messages out of every request, but keep them on the branch", marking(enhancer.Excluded, "")).As("exclude", "chatctx exclude @7").
			With("A call takes its results along, and a result its call."),
		Define("marks.include", "POST", Write, "send excluded messages again", marking("", enhancer.Excluded)).As("include", "chatctx include @7"),
	}
}

// Marking names messages that get a mark, or lose it.
type Marking struct {
	Change
	Messages []record.Ref `json:"messages" arg:"REF…" doc:"messages, or ranges A..B: after A, up to B and including it"`
	DryRun
}

// NewMark is a mark for messages.
type NewMark struct {
	Marking
	Mark string `json:"mark,omitempty" words:"pinned excluded" doc:"the mark; without it, the mark is removed"`
}

// Marked is a message with its mark.
type Marked struct {
	Message  chatctx.ID `json:"message"`
	Position int        `json:"position,omitempty"`
	Mark     *string    `json:"mark"`
	Preview  string     `json:"preview,omitempty"`
}

// Marks are the messages whose mark was changed.
type Marks struct {
	DryRun bool `json:"dry_run,omitempty"`
	contract.Where
	Messages []Marked `json:"messages"`
}

func setMarks(r *Request, in *NewMark) (Marks, error) { return marking(in.Mark, "")(r, &in.Marking) }

// marking gives messages a mark, or removes it; with only it removes no other one.
func marking(mark, only string) func(*Request, *Marking) (Marks, error) {
	return func(r *Request, in *Marking) (v Marks, err error) {
		c, snap, err := r.snapshotToChange(in.Target)
		if err != nil {
			return v, err
		}
		marks, err := c.Marks(r.Ctx)
		if err != nil {
			return v, err
		}
		in.Context, in.Branch = c.ID.String(), snap.Info.Name
		v = Marks{DryRun: in.Dry(), Where: contract.Where{Context: c.ID, Branch: in.Branch}, Messages: []Marked{}}
		for _, ref := range in.Messages {
			named, err := Named(r.Ctx, snap, ref)
			if err != nil {
				return v, err
			}
			for _, e := range named {
				if marks[e.ID] != mark && (only == "" || marks[e.ID] == only) {
					v.Messages = append(v.Messages, Marked{Message: e.ID, Position: e.Position, Mark: contract.String(mark)})
				}
			}
		}
		switch {
		case v.DryRun:
			return v, nil
		case len(v.Messages) == 0:
			r.Done = new(record.Committed)
			return v, nil
		}
		done, err := r.commit(in.Change, func(b *chatctx.Batch) {
			for _, m := range v.Messages {
				b.Mark(record.Ref(m.Message.String()), mark)
			}
		})
		if err != nil {
			return v, err
		}
		v.Where = contract.WhereOf(done)
		return v, nil
	}
}

// MarkList says whose marks are listed. The command line lists those of a branch.
type MarkList struct {
	Conversation
	Branch string `json:"branch,omitempty" doc:"only the messages of this branch, with their positions and first words"`
	here   bool
}

func (in *MarkList) locate(context, branch string) Place {
	in.Context, in.Branch, in.here = context, branch, true
	return OnBranch
}

func listMarks(r *Request, in *MarkList) (list List[Marked], err error) {
	if in.here || in.Branch != "" {
		return listMarksOn(r, in)
	}
	c, _, err := r.conversation(in.Context)
	if err != nil {
		return list, err
	}
	marks, err := c.Marks(r.Ctx)
	if err != nil {
		return list, err
	}
	var items []Marked
	for id, mark := range marks {
		items = append(items, Marked{Message: id, Mark: &mark})
	}
	slices.SortFunc(items, func(a, b Marked) int { return slices.Compare(a.Message[:], b.Message[:]) })
	return ListOf(items), nil
}

// listMarksOn lists the marked messages of a branch.
func listMarksOn(r *Request, in *MarkList) (list List[Marked], err error) {
	c, snap, err := r.snapshot(Target{in.Context, in.Branch})
	if err != nil {
		return list, err
	}
	in.Branch = snap.Info.Name
	marks, err := c.Marks(r.Ctx)
	if err != nil {
		return list, err
	}
	var items []Marked
	for id, mark := range marks {
		e, err := snap.Find(r.Ctx, record.Ref(id.String()))
		if err != nil {
			return list, err
		}
		if e.Position > 0 {
			items = append(items, Marked{e.ID, e.Position, &mark, tokens.Preview(e.Message, 60)})
		}
	}
	slices.SortFunc(items, func(a, b Marked) int { return a.Position - b.Position })
	return ListOf(items), nil
}
