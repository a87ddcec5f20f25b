package serve

import (
	"iter"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/contract"
)

func journalMethods() []*method {
	const in, at = "/contexts/{context}", "/contexts/{context}/branches/{branch}"
	return []*method{
		define("operations.list", "GET "+in+"/operations", Read, "what was done in a conversation, the newest first", listOperations),
		define("operations.store", "GET /operations", Read, "what was done to the store: new, rm, restore, import", storeOperations),
		define("undo", "POST "+at+"/undo", Write, "take back the last operation of a branch, or one that is named", undo),
		define("redo", "POST "+at+"/redo", Write, "take the branch's last undo back", redo),
	}
}

type operationsParams struct {
	conversation
	storeOperationsParams
}

type storeOperationsParams struct {
	After string `json:"after,omitempty" doc:"the operation that the page before ended with"`
	Limit int    `json:"limit,omitempty" doc:"at most so many; 0: 100"`
}

func listOperations(r *request, in *operationsParams) (list[contract.Operation], error) {
	return in.page(r.store.Operations(r.ctx, in.Context))
}

func storeOperations(r *request, in *storeOperationsParams) (list[contract.Operation], error) {
	return in.page(r.store.StoreOperations(r.ctx))
}

func (in *storeOperationsParams) page(ops iter.Seq2[*chatctx.Operation, error]) (list[contract.Operation], error) {
	var out list[contract.Operation]
	limit, err := limitOf(in.Limit)
	if err != nil {
		return out, err
	}
	items := []contract.Operation{}
	begun := in.After == ""
	for o, err := range ops {
		switch {
		case err != nil:
			return out, err
		case !begun:
			begun = o.ID == in.After
			continue
		case len(items) == limit:
			out.Next = items[limit-1].Operation
		}
		if out.Next != "" {
			break
		}
		items = append(items, contract.OperationOf(o))
	}
	out.Items = items
	return out, nil
}

type undoParams struct {
	target
	Operation string `json:"operation,omitempty" doc:"which one; else the newest that holds on the branch, or on the conversation where that came after"`
}

func undo(r *request, in *undoParams) (contract.Undone, error) {
	return undone(r.store.Undo(r.ctx, in.Context, in.Branch, in.Operation))
}

func redo(r *request, in *target) (contract.Undone, error) {
	return undone(r.store.Redo(r.ctx, in.Context, in.Branch))
}

func undone(u *chatctx.Undone, err error) (contract.Undone, error) {
	if err != nil {
		return contract.Undone{}, err
	}
	return contract.UndoneOf(u), nil
}
