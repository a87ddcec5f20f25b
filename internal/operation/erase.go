package operation

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
)

func init() { Register(Group{Heading: "Space and erasure", Of: erasureOperations}) }

const purgeHelp = `CTX erases the whole conversation, --branch alone a branch with what no other branch holds, --message messages. Decisions, undo, the words in the search index and artifacts that nothing
else needs go too; a branch or a message takes its conversation's undo along. Nothing brings it back. Copies of the file made before still have it. A mark stays, from which nobody can read what was there, so that no import
of the same source brings it back (import --purged does); --forget keeps none.`

func erasureOperations() []*Operation {
	return []*Operation{
		Define("store.purge", "POST", Admin, "erase a conversation, a branch or messages, so that no byte of them is left in the file", purge).With(purgeHelp).
			As("purge", "chatctx purge \"Holiday plans\" --dry-run\nchatctx purge --message @-2 --yes"),
	}
}

// Purging says what to erase: messages, else a branch, else a conversation.
type Purging struct {
	Target
	Named    string       `json:"-" arg:"[CTX]"`
	Messages []record.Ref `json:"messages,omitempty" flag:"message" doc:"erase the message {REF} from all branches, with its copies; may be given again"`
	Forget   bool         `json:"forget,omitempty" flag:"forget" doc:"keep no mark of what was erased: an import of its source brings it back"`
	DryRun
	Unasked
}

// Erased is what a purge removed or would remove.
type Erased struct {
	DryRun     bool       `json:"dry_run"`
	What       string     `json:"what"`
	Context    chatctx.ID `json:"context"`
	Title      string     `json:"title"`
	Branches   []string   `json:"branches"`
	Copies     int        `json:"copies"`
	Messages   int        `json:"messages"`
	Operations int        `json:"operations"`
	Artifacts  int        `json:"artifacts"`
	Bytes      int64      `json:"bytes"`
	Complete   bool       `json:"complete"`
	Leftovers  []string   `json:"leftovers,omitempty"`
}

func purge(r *Request, in *Purging) (v Erased, err error) {
	ref, store, o := in.Context, r.Store.Maintenance(), chatctx.PurgeOptions{DryRun: in.Dry(), Forget: in.Forget}
	if in.Named != "" {
		ref = in.Named
	}
	var p *record.Purged
	switch {
	case len(in.Messages) > 0:
		p, err = store.PurgeMessages(r.Ctx, ref, in.Branch, in.Messages, o)
	case in.Branch != "":
		p, err = store.PurgeBranch(r.Ctx, ref, in.Branch, o)
	default:
		p, err = store.PurgeContext(r.Ctx, ref, o)
	}
	if err != nil {
		return v, err
	}
	c := p.Collected
	return Erased{in.Dry(), p.What, p.Context, p.Title, ListOf(p.Branches).Items, p.Copies, c.Messages, c.Operations, c.Artifacts, c.Bytes, len(c.Leftovers) == 0, c.Leftovers}, nil
}
