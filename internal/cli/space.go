package cli

import (
	"errors"
	"strings"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
)

func spaceCommands() []*command {
	return []*command{{name: "gc"}, {name: "purge"}, {name: "redact"}, {name: "vacuum"}}
}

func init() { lookGroups = append(lookGroups, erasureLooks) }

func erasureLooks() map[string]look {
	purge := preparing(func(r *run, in *operation.Purging) error {
		switch {
		case in.Named != "" && r.typedContext() != "":
			return usagef("purge: name the conversation once, as CTX or with --context")
		case in.Named == "" && len(in.Messages) == 0 && r.branchName() == "":
			return &usageError{"purge: what?", "chatctx purge CTX, or --branch BRANCH, or --message REF"}
		}
		return nil
	}, as(func(r *run, _ *operation.Purging, v operation.Erased) { r.printErased(v) }))
	purge.question, purge.why = "Erase it? Nothing brings it back.", "purge erases for good: nothing brings it back"
	purge.then = func(r *run, in, out any) error { return r.afterErasure(out.(operation.Erased)) }
	return map[string]look{"store.purge": purge}
}

// afterErasure says where else there may be something of what was erased.
func (r *run) afterErasure(v operation.Erased) error {
	r.nameLeftovers(v.Leftovers)
	if on := r.onServer(); on != nil {
		r.note("%s", on.Instead(kv.CareErase))
	}
	if v.DryRun || v.Complete {
		return nil
	}
	return errBeside()
}

// nameLeftovers names what other programs left that may hold what was erased.
func (r *run) nameLeftovers(left []string) {
	for _, path := range left {
		r.note("%s may hold what the store held: a program uses it, or was killed; remove it unless one uses it", path)
	}
}

// errBeside is the error of an erasure that could not reach files of other programs.
func errBeside() error {
	return contract.Partly(errors.New("other files may still hold what was erased"), "in the store it is gone")
}

func (r *run) printErased(v operation.Erased) {
	what := map[string]string{"context": "the conversation ", "branch": "a branch of ", "message": "messages of "}[v.What]
	verb := map[bool]string{true: "would be erased", false: "erased"}[v.DryRun]
	r.printf("%s: %s%s, %s, %s of undo, %s; %s\n", verb, what, titled(v.Title, v.Context), count(v.Messages, "message"), count(v.Operations, "operation"), count(v.Artifacts, "artifact"), size(v.Bytes))
	if v.Copies > 0 {
		r.printf("among them %s on forks and in other conversations\n", strings.Replace(count(v.Copies, "copy"), "copys", "copies", 1))
	}
	if len(v.Branches) > 0 {
		r.printf("from: %s\n", clean(strings.Join(v.Branches, ", ")))
	}
}
