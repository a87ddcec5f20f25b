package cli

import (
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/operation"
)

// chosen returns the contexts that arguments name, each once, or without arguments those that fit the filters. Names also find contexts in the trash.
func (r *run) chosen(names []string, which operation.Filters) ([]*record.ContextInfo, error) {
	if len(names) > 0 && which.Given() {
		return nil, usagef("%s takes names or filters, not both", r.name)
	}
	return which.Choose(r.request(), names)
}

// needsNames refuses a command line that selects no context.
func (r *run) needsNames(names []string, which operation.Filters, example string) error {
	if len(names) == 0 && !which.Given() {
		return &usageError{r.name + " needs the CTX, or a filter", example}
	}
	return nil
}

// wouldDo prints what a command would do to contexts, a line for each.
func (r *run) wouldDo(all []*record.ContextInfo, what string) error {
	for _, info := range all {
		err := r.emit(struct {
			DryRun bool `json:"dry_run"`
			*record.ContextInfo
		}{true, info}, func() {
			r.printf("would %s %s: %s, %s\n", what, named(info.Title, info.ID), count(info.Messages, "message"), count(info.Branches, "branch"))
		})
		if err != nil {
			return err
		}
	}
	if len(all) == 0 {
		r.note("no conversation fits")
	}
	return nil
}
