package operation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/internal/codec"
	"github.com/chatctx/chatctx/internal/contract"
)

// Kind is a kind of error with which an operation may end.
type Kind struct {
	Name   string
	Codes  []int // of the command line's exit, and in the error's JSON
	Status int   // of HTTP
	Does   string
}

// kinds are all kinds of errors: those of every operation, then those that some have.
var kinds = []Kind{
	{"usage", []int{contract.Usage}, 400, "the request is wrong, whatever the store holds"},
	{"unauthenticated", []int{contract.Failed}, 401, "no token, or an unknown one"},
	{"forbidden", []int{contract.Failed}, 403, "the token lacks a scope"},
	{"failed", []int{contract.Failed}, 500, "any other failure"},
	{"interrupted", []int{contract.Interrupted}, 503, "the request was cancelled, or its connection ended"},
	{"too_slow", []int{contract.Failed}, 408, "the body came too slowly"},
	{"too_large", []int{contract.Failed}, 413, "the request, or the answer, is larger than a bound"},
	{"too_many", []int{contract.Failed}, 503, "too many requests run, or too many uploads wait"},
	{"busy", []int{contract.Failed}, 503, "too many answers wait to be read"},
	{"no_store", []int{contract.NoStore}, 503, "there is no store"},
	{"locked", []int{contract.Locked}, 503, "another program holds the store"},
	{"not_a_store", []int{contract.Damaged}, 500, "the file is no store"},
	{"damaged", []int{contract.Damaged}, 500, "the store is damaged"},
	{"too_new", []int{contract.Version}, 500, "a newer version made the store"},
	{"too_old", []int{contract.Version}, 500, "an older version made the store"},
	{"away", []int{contract.Away}, 500, "the store's server does not answer"},
	{"read_only", []int{contract.Failed}, 403, "the store cannot be written"},
	{"permission", []int{contract.Failed}, 403, "the system does not allow it"},
	{"decider", []int{contract.Failed}, 403, "an agent's calls depend on it, and only who may decide about them may do it"},
	{"unknown_outcome", []int{contract.Failed}, 500, "the connection ended before the store said whether the change was made"},

	{"not_found", []int{contract.NotFound}, 404, "what the request names is not there"},
	{"ambiguous", []int{contract.Ambiguous}, 409, "a name means several things; `candidates` has them"},
	{"empty", []int{contract.NotFound, contract.Provider}, 404, "the branch has no message, or the reply has nothing in it"},
	{"purged", []int{contract.NotFound, contract.Failed}, 410, "it was erased"},
	{"conflict", []int{contract.Conflict}, 409, "the state of the store does not allow it; 412 if it is not at an expected revision"},

	{"authentication", []int{contract.Provider}, 502, "the provider takes no key, or a wrong one, from here"},
	{"rate_limit", []int{contract.Provider}, 502, "the provider is asked too often; `retry_after` has the seconds to wait"},
	{"too_long", []int{contract.Failed, contract.Provider}, 413, "more tokens than the model or the budget takes"},
	{"refused", []int{contract.Provider}, 502, "the provider, or the model, will not answer this"},
	{"overloaded", []int{contract.Provider}, 502, "the provider has no capacity, or failed"},
	{"network", []int{contract.Provider}, 502, "the provider was not reached, or did not answer in time"},
	{"invalid", []int{contract.Provider}, 502, "the provider does not accept the request"},
	{"incomplete", []int{contract.Provider}, 502, "the reply broke off before its end"},
	{"filtered", []int{contract.Provider}, 502, "the provider withheld the reply, or the rest of it"},
	{"cut_short", []int{contract.Provider}, 502, "a limit of tokens ended the reply"},
	{"lost_call", []int{contract.Provider}, 502, "a call in the reply could not be read"},
	{"broken_off", []int{contract.Provider}, 502, "the reply was stopped before its end"},
	{"unusable", []int{contract.Provider}, 502, "the reply is not what was asked for"},
	{"partial", []int{contract.Partial, contract.Provider}, 502, "only a part was done"},
}

// Kinds returns all kinds of errors, the common ones first.
func Kinds() []Kind { return kinds }

// asking are the kinds of operations that ask a model.
var asking = kindsFrom("authentication", "partial")

func kindsFrom(first, last string) (names []string) {
	is := func(name string) int { return slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name }) }
	for _, k := range kinds[is(first) : is(last)+1] {
		names = append(names, k.Name)
	}
	return names
}

// CommonErrors are the kinds of errors that every operation may end with.
func CommonErrors() []Kind { return kinds[:len(kindsFrom("usage", "unknown_outcome"))] }

// kindNamed returns a kind of error. One that is not in the table is like any other failure.
func kindNamed(name string) Kind {
	for _, k := range kinds {
		if k.Name == name {
			return k
		}
	}
	return Kind{name, []int{contract.Failed}, 500, ""}
}

// StatusOf returns the HTTP status of a kind of error.
func StatusOf(kind string) int { return kindNamed(kind).Status }

// Fails names kinds of errors that an operation may end with beside those that follow from its form.
func (o *Operation) Fails(kinds ...string) *Operation { o.fails = append(o.fails, kinds...); return o }

// Named returns the kinds of errors that an operation's entry names.
func (o *Operation) Named() []string { return slices.Clone(o.fails) }

// Errors returns the kinds of errors that an operation may end with, beside the common ones: those of what it names, those of a change, and those that its entry names.
func (o *Operation) Errors() (all []Kind) {
	names := o.Named()
	if strings.Contains(o.Path, "{") || slices.ContainsFunc(codec.Fields(o.In), func(f codec.Field) bool { return f.Name == "context" }) {
		names = append(names, "not_found", "ambiguous", "purged")
	}
	if strings.Contains(o.Path, "{branch}") {
		names = append(names, "empty")
	}
	onBranch := slices.ContainsFunc(codec.Fields(o.In), func(f codec.Field) bool { return f.Name == "branch" })
	if o.Changes() || o.Path == "" && onBranch { // on the command line the branch on which a person was may have been removed
		names = append(names, "conflict")
	}
	for _, k := range kinds {
		if slices.Contains(names, k.Name) {
			all = append(all, k)
		}
	}
	return all
}

// Unlisted returns an error if an operation does not say that it may end with err.
func (o *Operation) Unlisted(err error) error {
	code, kind := Classify(err)
	for _, k := range append(o.Errors(), CommonErrors()...) {
		if k.Name == kind && slices.Contains(k.Codes, code) {
			return nil
		}
	}
	return fmt.Errorf("%s ends with %q and exit code %d, which its entry does not say: %w", o.Name, kind, code, err)
}

// Observed gets each error that an operation ends with. Only tests set it, before the first operation runs.
var Observed func(*Operation, error)

// Observe passes on an error with which an operation ends.
func (o *Operation) Observe(err error) {
	if err != nil && Observed != nil {
		Observed(o, err)
	}
}
