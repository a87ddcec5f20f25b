package operation

import (
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
)

func init() { Register(Group{Heading: "Changing a history", Of: historyOperations}) }

func historyOperations() []*Operation {
	const in, at = "/contexts/{context}", "/contexts/{context}/branches/{branch}"
	return []*Operation{
		Define("history.rewind", "POST "+at+"/rewind", Write, "make a message the head of a branch; undo brings the later messages back", rewind),
		Define("history.drop", "POST "+at+"/drop", Write, "take messages off a branch, and with a call its results", drop),
		Define("history.clear", "POST "+at+"/clear", Write, "empty a branch", clearBranch),
		Define("history.interrupt", "POST "+at+"/interrupt", Write, "stop an answer and take the unfinished turn off a branch", interrupt),
		Define("history.pick", "POST "+at+"/pick", Write, "copy messages of another branch to the end of this one", pick),
		Define("history.merge", "POST "+at+"/merge", Write, "add the messages that another branch has since the common ancestor", merge),
		Define("diff", "GET "+in+"/diff", Read, "list the messages that two branches do not share", diff),
		Define("marks.set", "POST "+at+"/marks", Write, "pin messages, exclude them from requests, or remove their mark", setMarks),
		Define("marks.list", "GET "+in+"/marks", Read, "list the marked messages", listMarks),
		Define("tags.list", "GET "+in+"/tags", Read, "list the tags", listTags),
		Define("tags.set", "POST "+at+"/tags", Write, "give a message a second name", setTag),
		Define("tags.remove", "POST "+in+"/tags/{tag}/remove", Write, "remove a tag", removeTag),
	}
}

// moved is the result of a changed history.
type moved struct {
	contract.Moved
	Revision uint64 `json:"revision"`
}

func (r *Request) move(t Change, fill func(*chatctx.Batch)) (moved, error) {
	done, err := r.commit(t, fill)
	if err != nil {
		return moved{}, err
	}
	return moved{contract.MovedOf(done), done.Revision}, nil
}

type refParams struct {
	Change
	Message string `json:"message" doc:"the message: its id, a tag, @, @-2, u3 …"`
}

func rewind(r *Request, in *refParams) (moved, error) {
	return r.move(in.Change, func(b *chatctx.Batch) { b.Rewind(record.Ref(in.Message)) })
}

type refsParams struct {
	Change
	Messages []string `json:"messages" doc:"messages, or ranges A..B: after A, up to B and including it"`
}

func (p *refsParams) refs() []record.Ref {
	refs := make([]record.Ref, len(p.Messages))
	for i, m := range p.Messages {
		refs[i] = record.Ref(m)
	}
	return refs
}

func drop(r *Request, in *refsParams) (moved, error) {
	return r.move(in.Change, func(b *chatctx.Batch) { b.Drop(in.refs()...) })
}

func clearBranch(r *Request, in *Change) (moved, error) {
	return r.move(*in, func(b *chatctx.Batch) { b.Clear() })
}

type interruptParams struct {
	Change
	Question bool `json:"question,omitempty" doc:"also take off the user's message"`
}

func interrupt(r *Request, in *interruptParams) (moved, error) {
	return r.move(in.Change, func(b *chatctx.Batch) { b.Interrupt(chatctx.InterruptOptions{Question: in.Question}) })
}

type pickParams struct {
	refsParams
	From string `json:"from" doc:"the branch that has the messages"`
}

func pick(r *Request, in *pickParams) (moved, error) {
	return r.move(in.Change, func(b *chatctx.Batch) { b.Pick(in.From, in.refs()...) })
}

type mergeParams struct {
	Change
	From    string `json:"from" doc:"the branch whose messages to add"`
	Summary string `json:"summary,omitempty" doc:"add one message with this text instead of them"`
}

func merge(r *Request, in *mergeParams) (moved, error) {
	return r.move(in.Change, func(b *chatctx.Batch) { b.Merge(in.From, chatctx.MergeOptions{Summary: in.Summary}) })
}

type diffParams struct {
	Conversation
	A string `json:"a" doc:"a branch"`
	B string `json:"b" doc:"another branch"`
}

func diff(r *Request, in *diffParams) (contract.Difference, error) {
	c, err := r.settled(in.Context)
	if err != nil {
		return contract.Difference{}, err
	}
	size, err := c.DiffSize(r.Ctx, in.A, in.B)
	if err == nil {
		err = r.holdWhole(size)
	}
	if err != nil {
		return contract.Difference{}, err
	}
	d, err := c.Diff(r.Ctx, in.A, in.B)
	if err != nil {
		return contract.Difference{}, err
	}
	return contract.DifferenceOf(c.ID, d), nil
}

type markParams struct {
	refsParams
	Mark string `json:"mark,omitempty" doc:"pinned or excluded; without it, the mark is removed"`
}

func setMarks(r *Request, in *markParams) (contract.Where, error) {
	return where(r.commit(in.Change, func(b *chatctx.Batch) {
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

func listMarks(r *Request, in *Conversation) (List[marked], error) {
	c, _, err := r.conversation(in.Context)
	if err != nil {
		return List[marked]{}, err
	}
	marks, err := c.Marks(r.Ctx)
	if err != nil {
		return List[marked]{}, err
	}
	var items []marked
	for id, mark := range marks {
		items = append(items, marked{id, mark})
	}
	slices.SortFunc(items, func(a, b marked) int { return slices.Compare(a.Message[:], b.Message[:]) })
	return ListOf(items), nil
}

func listTags(r *Request, in *Conversation) (List[contract.Tag], error) {
	c, _, err := r.conversation(in.Context)
	if err != nil {
		return List[contract.Tag]{}, err
	}
	tags, err := c.Tags(r.Ctx)
	if err != nil {
		return List[contract.Tag]{}, err
	}
	var items []contract.Tag
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		items = append(items, contract.Tag{Where: contract.Where{Context: c.ID}, Tag: name, Message: contract.ID(tags[name])})
	}
	return ListOf(items), nil
}

type tagParams struct {
	refParams
	Tag string `json:"tag" doc:"the name, unique in the conversation"`
}

func setTag(r *Request, in *tagParams) (contract.Tag, error) {
	done, err := r.commit(in.Change, func(b *chatctx.Batch) { b.Tag(in.Tag, record.Ref(in.Message)) })
	if err != nil {
		return contract.Tag{}, err
	}
	c, err := r.Store.Context(r.Ctx, done.Context.String())
	if err != nil {
		return contract.Tag{}, err
	}
	tags, err := c.Tags(r.Ctx)
	return contract.Tag{Where: contract.WhereOf(done), Tag: in.Tag, Message: contract.ID(tags[in.Tag])}, err
}

type untagParams struct {
	ContextChange
	Tag string `json:"tag" doc:"the name"`
}

func removeTag(r *Request, in *untagParams) (contract.Tag, error) {
	done, err := r.onContext(in.Context, func(b *chatctx.Batch) { b.Untag(in.Tag) })
	if err != nil {
		return contract.Tag{}, err
	}
	return contract.Tag{Where: contract.WhereOf(done), Tag: in.Tag}, nil
}
