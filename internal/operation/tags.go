package operation

import (
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
)

func init() { Register(Group{Heading: "Changing a history", Of: tagOperations}) }

func tagOperations() []*Operation {
	const in, at = "/contexts/{context}", "/contexts/{context}/branches/{branch}"
	return []*Operation{
		Define("tags.set", "POST "+at+"/tags", Write, "give a message a second name", setTag).As("tag", "chatctx tag good @-1").
			With("A tag is unique in its conversation. Without REF the head gets it.").Alone("tags.list"),
		Define("tags.list", "GET "+in+"/tags", Read, "list the tags", listTags).As("tag ls", "chatctx tag ls"),
		Define("tags.remove", "POST "+in+"/tags/{tag}/remove", Write, "remove a tag", removeTag).As("tag rm", "chatctx tag rm good"),
	}
}

func listTags(r *Request, in *Conversation) (List[contract.Tag], error) {
	c, _, err := r.conversation(in.Context)
	if err != nil {
		return List[contract.Tag]{}, err
	}
	tags, err := c.Tags(r.Ctx)
	return ListEach(slices.Sorted(maps.Keys(tags)), err, func(name string) contract.Tag {
		return contract.Tag{Where: contract.Where{Context: c.ID}, Tag: name, Message: contract.ID(tags[name])}
	})
}

// NewTag is a tag for a message. The command line may leave out the message, and means the head.
type NewTag struct {
	Change
	Tag     string     `json:"tag" arg:"NAME" doc:"the name, unique in the conversation"`
	Message record.Ref `json:"message" arg:"[REF]" doc:"the message: its id, a tag, @, @-2, u3 …"`
}

func setTag(r *Request, in *NewTag) (contract.Tag, error) {
	done, err := r.commit(in.Change, func(b *chatctx.Batch) { b.Tag(in.Tag, in.Message) })
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

// OldTag names a tag of a conversation.
type OldTag struct {
	ContextChange
	Tag string `json:"tag" arg:"TAG" doc:"the name"`
}

func removeTag(r *Request, in *OldTag) (contract.Tag, error) {
	done, err := r.onContext(in.Context, func(b *chatctx.Batch) { b.Untag(in.Tag) })
	if err != nil {
		return contract.Tag{}, err
	}
	return contract.Tag{Where: contract.WhereOf(done), Tag: in.Tag}, nil
}
