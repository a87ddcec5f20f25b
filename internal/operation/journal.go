package operation

import (
	"iter"
	"strings"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/journal"
)

func init() { Register(Group{Heading: "Taking back", Of: journalOperations}) }

func journalOperations() []*Operation {
	const in, at = "/contexts/{context}", "/contexts/{context}/branches/{branch}"
	return []*Operation{
		Define("operations.list", "GET "+in+"/operations", Read, "list what was done, the newest first", listOperations).As("op log", "chatctx op log -n 10").
			With("Each line says what the operation changed, with old and new values, but only the names of settings that can hold an address, a path or a key. The list includes changes of the store that concern this conversation or the whole store, and your own changes there while this conversation was current."),
		Define("operations.store", "GET /operations", Read, "list the operations of the store, newest first: new, rm, restore, import and others", storeOperations).Fails("not_found"),
		Define("operations.undo", "POST /operations/{operation}/undo", Write, "undo an operation of the store; to undo an undo is to redo it", undoStoreOperation),
		Define("undo", "POST "+at+"/undo", Write, "take back the branch's last operation, or the one that is named", undo).As("undo", "chatctx undo").
			With("If an operation of the conversation or the store (rename, rm, import …) came last, undo takes that back. On a server it takes back what others did to the store only if OP names it. Any operation can be taken back as long as what it changed was not changed since; undo is refused (5) with the names of later operations that did, if the operation concerns a running call, or if an example of a rule would break."),
		Define("redo", "POST "+at+"/redo", Write, "take the last undo back", redo).As("redo", "chatctx redo").
			With("It redoes what was undone on the branch, the conversation or the store, newest first, until something else is done there. If undo removed a branch, run redo with its name as --branch, on the branch that it was forked from, or on the branch where undo led."),
	}
}

// Journal is the journal of a conversation, or on the command line the store's.
type Journal struct {
	Conversation
	storeJournal
	Both  bool `json:"with_store,omitempty" doc:"also the changes of the store that concern the conversation, in their places"`
	Store bool `json:"-" flag:"global" old:"store" doc:"of the whole store, in place of one conversation"`
}

type storeJournal struct {
	After string `json:"after,omitempty" doc:"the last operation of the previous page"`
	Limit *int   `json:"limit,omitempty" flag:"n" doc:"at most {N}" api:"up to 1000; 100 without it"`
}

func listOperations(r *Request, in *Journal) (List[*record.Operation], error) {
	ops := r.Store.Operations(r.Ctx, in.Context)
	if in.Store {
		ops = journal.StoreOperations(r.Ctx, base.Of(r.Store))
	} else if in.Both {
		ops = journal.AllOperations(r.Ctx, base.Of(r.Store), in.Context)
	}
	return in.page(r, ops)
}

func storeOperations(r *Request, in *storeJournal) (List[*record.Operation], error) {
	return in.page(r, journal.StoreOperations(r.Ctx, base.Of(r.Store)))
}

func (in *storeJournal) page(r *Request, ops iter.Seq2[*record.Operation, error]) (List[*record.Operation], error) {
	return PageOf(r, in.later(ops), in.Limit, func(o *record.Operation) string { return o.ID })
}

// later returns the operations after the last one of the previous page.
func (in *storeJournal) later(ops iter.Seq2[*record.Operation, error]) iter.Seq2[*record.Operation, error] {
	if in.After == "" {
		return ops
	}
	return func(yield func(*record.Operation, error) bool) {
		begun := false
		for o, err := range ops {
			if (begun || err != nil) && !yield(o, err) {
				return
			}
			begun = begun || err == nil && o.ID == in.After
		}
		if !begun {
			yield(nil, base.NotFound("operation", in.After))
		}
	}
}

// ToUndo names the operation to undo.
type ToUndo struct {
	Change
	Operation string `json:"operation,omitempty" arg:"[OP]" doc:"the operation to undo; by default the newest in force on the branch or the conversation"`
}

// plain are the operations that the scope write alone may undo. Others decide about calls, or set what may run or where requests go: undoing them needs
// the scopes decide and admin.
var plain = map[string]bool{"add": true, "append": true, "edit": true, "fork": true, "branch mv": true, "branch rm": true, "branch restore": true, "switch": true, "rewind": true, "drop": true, "clear": true, "interrupt": true, "pick": true,
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
	journals := []iter.Seq2[*record.Operation, error]{journal.StoreOperations(r.Ctx, base.Of(r.Store))}
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
	return base.NotFound("operation", operation)
}

func undo(r *Request, in *ToUndo) (contract.Undone, error) {
	if err := r.mayUndo(in.Context, in.Operation); err != nil {
		return contract.Undone{}, err
	}
	return r.undone(r.Store.Undo(r.Ctx, in.Context, in.Branch, in.Operation))
}

type storeUndo struct {
	Keyed
	Operation string `json:"operation" doc:"the operation: s and its number, such as s12"`
}

func undoStoreOperation(r *Request, in *storeUndo) (contract.Undone, error) {
	if !strings.HasPrefix(in.Operation, "s") {
		return contract.Undone{}, base.Invalid("%q is no operation of the store: those of a conversation are taken back on a branch", in.Operation)
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

func (r *Request) undone(u *record.Undone, err error) (contract.Undone, error) {
	if err != nil {
		return contract.Undone{}, err
	}
	if u.Branch != "" {
		r.Revision = &u.Revision
	}
	return contract.UndoneOf(u), nil
}
