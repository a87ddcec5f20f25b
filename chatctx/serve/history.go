package serve

import (
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/contract"
)

func historyMethods() []*method {
	const in, at = "/contexts/{context}", "/contexts/{context}/branches/{branch}"
	return []*method{
		define("history.rewind", "POST "+at+"/rewind", Write, "make a message the head of a branch; undo brings the later messages back", rewind),
		define("history.drop", "POST "+at+"/drop", Write, "take messages off a branch, and with a call its results", drop),
		define("history.clear", "POST "+at+"/clear", Write, "empty a branch", clearBranch),
		define("history.interrupt", "POST "+at+"/interrupt", Write, "stop an answer and take the unfinished turn off a branch", interrupt),
		define("history.pick", "POST "+at+"/pick", Write, "copy messages of another branch to the end of this one", pick),
		define("history.merge", "POST "+at+"/merge", Write, "add the messages that another branch has since the common ancestor", merge),
		define("diff", "GET "+in+"/diff", Read, "list the messages that two branches do not share", diff),
		define("marks.set", "POST "+at+"/marks", Write, "pin messages, exclude them from requests, or remove their mark", setMarks),
		define("marks.list", "GET "+in+"/marks", Read, "list the marked messages", listMarks),
		define("tags.list", "GET "+in+"/tags", Read, "list the tags", listTags),
		define("tags.set", "POST "+at+"/tags", Write, "give a message a second name", setTag),
		define("tags.remove", "POST "+in+"/tags/{tag}/remove", Write, "remove a tag", removeTag),
	}
}

// moved is the result of a changed history.
type moved struct {
	contract.Moved
	Revision uint64 `json:"revision"`
}

func (r *request) move(t change, fill func(*chatctx.Batch)) (moved, error) {
	done, err := r.commit(t, fill)
	if err != nil {
		return moved{}, err
	}
	return moved{contract.MovedOf(done), done.Revision}, nil
}

type refParams struct {
	change
	Message string `json:"message" doc:"the message: its id, a tag, @, @-2, u3 …"`
}

func rewind(r *request, in *refParams) (moved, error) {
	return r.move(in.change, func(b *chatctx.Batch) { b.Rewind(chatctx.Ref(in.Message)) })
}

type refsParams struct {
	change
	Messages []string `json:"messages" doc:"messages, or ranges A..B: after A, up to B and including it"`
}

func (p *refsParams) refs() []chatctx.Ref {
	refs := make([]chatctx.Ref, len(p.Messages))
	for i, m := range p.Messages {
		refs[i] = chatctx.Ref(m)
	}
	return refs
}

func drop(r *request, in *refsParams) (moved, error) {
	return r.move(in.change, func(b *chatctx.Batch) { b.Drop(in.refs()...) })
}

func clearBranch(r *request, in *change) (moved, error) {
	return r.move(*in, func(b *chatctx.Batch) { b.Clear() })
}

type interruptParams struct {
	change
	Question bool `json:"question,omitempty" doc:"also take off the user's message"`
}

func interrupt(r *request, in *interruptParams) (moved, error) {
	return r.move(in.change, func(b *chatctx.Batch) { b.Interrupt(chatctx.InterruptOptions{Question: in.Question}) })
}

type pickParams struct {
	refsParams
	From string `json:"from" doc:"the branch that has the messages"`
}

func pick(r *request, in *pickParams) (moved, error) {
	return r.move(in.change, func(b *chatctx.Batch) { b.Pick(in.From, in.refs()...) })
}

type mergeParams struct {
	change
	From    string `json:"from" doc:"the branch whose messages to add"`
	Summary string `json:"summary,omitempty" doc:"add one message with this text instead of them"`
}

func merge(r *request, in *mergeParams) (moved, error) {
	return r.move(in.change, func(b *chatctx.Batch) { b.Merge(in.From, chatctx.MergeOptions{Summary: in.Summary}) })
}

type diffParams struct {
	conversation
	A string `json:"a" doc:"a branch"`
	B string `json:"b" doc:"another branch"`
}

func diff(r *request, in *diffParams) (contract.Difference, error) {
	c, err := r.settled(in.Context)
	if err != nil {
		return contract.Difference{}, err
	}
	size, err := c.DiffSize(r.ctx, in.A, in.B)
	if err == nil {
		err = r.holdWhole(size)
	}
	if err != nil {
		return contract.Difference{}, err
	}
	d, err := c.Diff(r.ctx, in.A, in.B)
	if err != nil {
		return contract.Difference{}, err
	}
	return contract.DifferenceOf(c.ID, d), nil
}

type markParams struct {
	refsParams
	Mark string `json:"mark,omitempty" doc:"pinned or excluded; without it, the mark is removed"`
}

func setMarks(r *request, in *markParams) (contract.Where, error) {
	if in.Mark != "" && in.Mark != "pinned" && in.Mark != "excluded" {
		return contract.Where{}, chatctx.Invalid("mark is %q, and has to be pinned or excluded, or empty", in.Mark)
	}
	return where(r.commit(in.change, func(b *chatctx.Batch) {
		for _, ref := range in.refs() {
			b.Mark(ref, in.Mark)
		}
	}))
}

// marked is a message with a mark.
type marked struct {
	Message chatctx.ID `json:"message"`
	Mark    string     `json:"mark"`
}

func listMarks(r *request, in *conversation) (list[marked], error) {
	c, _, err := r.conversation(in.Context)
	if err != nil {
		return list[marked]{}, err
	}
	marks, err := c.Marks(r.ctx)
	if err != nil {
		return list[marked]{}, err
	}
	var items []marked
	for id, mark := range marks {
		items = append(items, marked{id, mark})
	}
	slices.SortFunc(items, func(a, b marked) int { return slices.Compare(a.Message[:], b.Message[:]) })
	return listOf(items), nil
}

func listTags(r *request, in *conversation) (list[contract.Tag], error) {
	c, _, err := r.conversation(in.Context)
	if err != nil {
		return list[contract.Tag]{}, err
	}
	tags, err := c.Tags(r.ctx)
	if err != nil {
		return list[contract.Tag]{}, err
	}
	var items []contract.Tag
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		items = append(items, contract.Tag{Where: contract.Where{Context: c.ID}, Tag: name, Message: contract.ID(tags[name])})
	}
	return listOf(items), nil
}

type tagParams struct {
	refParams
	Tag string `json:"tag" doc:"the name, unique in the conversation"`
}

func setTag(r *request, in *tagParams) (contract.Tag, error) {
	done, err := r.commit(in.change, func(b *chatctx.Batch) { b.Tag(in.Tag, chatctx.Ref(in.Message)) })
	if err != nil {
		return contract.Tag{}, err
	}
	c, err := r.store.Context(r.ctx, done.Context.String())
	if err != nil {
		return contract.Tag{}, err
	}
	tags, err := c.Tags(r.ctx)
	return contract.Tag{Where: contract.WhereOf(done), Tag: in.Tag, Message: contract.ID(tags[in.Tag])}, err
}

type untagParams struct {
	contextChange
	Tag string `json:"tag" doc:"the name"`
}

func removeTag(r *request, in *untagParams) (contract.Tag, error) {
	done, err := r.onContext(in.Context, func(b *chatctx.Batch) { b.Untag(in.Tag) })
	if err != nil {
		return contract.Tag{}, err
	}
	return contract.Tag{Where: contract.WhereOf(done), Tag: in.Tag}, nil
}
