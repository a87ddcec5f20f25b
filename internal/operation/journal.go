package operation

import (
	"iter"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/contract"
)

func init() { Register(Group{Heading: "Taking back", Of: journalOperations}) }

func journalOperations() []*Operation {
	const in, at = "/contexts/{context}", "/contexts/{context}/branches/{branch}"
	return []*Operation{
		Define("operations.list", "GET "+in+"/operations", Read, "list the operations of a conversation, newest first", listOperations),
		Define("operations.store", "GET /operations", Read, "list the operations of the store, newest first: new, rm, restore, import and others", storeOperations),
		Define("operations.undo", "POST /operations/{operation}/undo", Write, "undo an operation of the store; to undo an undo is to redo it", undoStoreOperation),
		Define("undo", "POST "+at+"/undo", Write, "undo the last operation of a branch, or the one given; an operation that decides about calls or sets what may run also needs decide and admin", undo),
		Define("redo", "POST "+at+"/redo", Write, "redo the last undone operation; also needs decide and admin", redo),
	}
}

type operationsParams struct {
	Conversation
	storeOperationsParams
}

type storeOperationsParams struct {
	After string `json:"after,omitempty" doc:"the last operation of the previous page"`
	Limit int    `json:"limit,omitempty" doc:"the most operations, up to 1000; 0 means 100"`
}

func listOperations(r *Request, in *operationsParams) (List[*chatctx.Operation], error) {
	return in.page(r.Store.Operations(r.Ctx, in.Context))
}

func storeOperations(r *Request, in *storeOperationsParams) (List[*chatctx.Operation], error) {
	return in.page(r.Store.StoreOperations(r.Ctx))
}

func (in *storeOperationsParams) page(ops iter.Seq2[*chatctx.Operation, error]) (List[*chatctx.Operation], error) {
	var out List[*chatctx.Operation]
	limit, err := limitOf(in.Limit)
	if err != nil {
		return out, err
	}
	items := []*chatctx.Operation{}
	begun := in.After == ""
	for o, err := range ops {
		switch {
		case err != nil:
			return out, err
		case !begun:
			begun = o.ID == in.After
			continue
		case len(items) == limit:
			out.Next = items[limit-1].ID
		}
		if out.Next != "" {
			break
		}
		items = append(items, o)
	}
	if !begun {
		return out, chatctx.NotFound("operation", in.After)
	}
	out.Items = items
	return out, nil
}

type undoParams struct {
	Change
	Operation string `json:"operation,omitempty" doc:"the operation to undo; by default the newest in force on the branch or the conversation"`
}

// plain are the operations that the scope write alone may undo. Others decide about calls, or set what may run or where requests go: undoing them needs
// the scopes decide and admin.
var plain = map[string]bool{"add": true, "append": true, "edit": true, "fork": true, "branch mv": true, "branch rm": true, "switch": true, "rewind": true, "drop": true, "clear": true, "interrupt": true, "pick": true,
	"merge": true, "take": true, "tag": true, "tag rm": true, "mark": true, "label": true, "label rm": true, "rename": true, "title": true, "system": true, "prompt": true, "reply": true, "send": true, "ask": true,
	"import": true, "new": true, "rm": true, "restore": true, "copy": true}

// mayUndo refuses an undo that the caller's scopes do not allow. A caller without all of them must name the operation.
func (r *Request) mayUndo(context, operation string) error {
	if r.May(Decide) && r.May(Admin) {
		return nil
	}
	if operation == "" {
		return &Refusal{403, "forbidden", "without the scopes decide and admin, undo names an operation"}
	}
	journals := []iter.Seq2[*chatctx.Operation, error]{r.Store.StoreOperations(r.Ctx)}
	if context != "" {
		journals = append(journals, r.Store.Operations(r.Ctx, context))
	}
	for _, ops := range journals {
		for o, err := range ops {
			if err != nil {
				return err
			}
			if o.ID == operation && plain[o.What] {
				return nil
			}
			if o.ID == operation {
				return &Refusal{403, "forbidden", "to take back " + o.What + " needs the scopes decide and admin"}
			}
		}
	}
	return chatctx.NotFound("operation", operation)
}

func undo(r *Request, in *undoParams) (contract.Undone, error) {
	if err := r.mayUndo(in.Context, in.Operation); err != nil {
		return contract.Undone{}, err
	}
	return r.undone(r.Store.Undo(r.Ctx, in.Context, in.Branch, in.Operation))
}

type storeUndoParams struct {
	Keyed
	Operation string `json:"operation" doc:"the operation: s and its number, such as s12"`
}

func undoStoreOperation(r *Request, in *storeUndoParams) (contract.Undone, error) {
	if !strings.HasPrefix(in.Operation, "s") {
		return contract.Undone{}, chatctx.Invalid("%q is no operation of the store: those of a conversation are taken back on a branch", in.Operation)
	}
	if err := r.mayUndo("", in.Operation); err != nil {
		return contract.Undone{}, err
	}
	return r.undone(r.Store.Undo(r.Ctx, "", "", in.Operation))
}

func redo(r *Request, in *Change) (contract.Undone, error) {
	if !r.May(Decide) || !r.May(Admin) { // the undone operation may be any
		return contract.Undone{}, &Refusal{403, "forbidden", "redo needs the scopes decide and admin too"}
	}
	return r.undone(r.Store.Redo(r.Ctx, in.Context, in.Branch))
}

func (r *Request) undone(u *chatctx.Undone, err error) (contract.Undone, error) {
	if err != nil {
		return contract.Undone{}, err
	}
	if u.Branch != "" {
		r.Revision = &u.Revision
	}
	return contract.UndoneOf(u), nil
}
