package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/secrets"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/contract"
)

func redactCommand() *command {
	return &command{name: "redact", does: "put " + chatctx.RedactedMark + " in place of secrets in everything that is stored", scope: onStore, run: in(doRedact),
		more: `It shows what it found, and asks. Files of text keep their encoding (UTF-8, UTF-16, UTF-32, Windows-1252, or the charset of their media type; without one, texts in GBK, Big5, Shift-JIS, EUC-JP and EUC-KR are searched by their ASCII alone). Parts that a provider has signed and files that are no text but show a secret stay and are named: purge their messages if they have to go. The conversations lose their undo, the search index follows, and the file is written anew.
Nothing brings a secret back. Earlier copies of the file still have it. Files in which nothing can be found, such as images and archives, are counted; with one of them, or where something stays, it was done in part (8).`,
		json:    "dry_run, complete, redacted, left, found[{context, title, message, field, what, shown, left}], not_searched{kind: files}, leftovers[]",
		example: "chatctx redact --secrets --dry-run"}
}

// redactionJSON is a secret that was found.
type redactionJSON struct {
	Context chatctx.ID  `json:"context"`
	Title   string      `json:"title"`
	Message *chatctx.ID `json:"message"`
	Field   string      `json:"field"`
	What    string      `json:"what"`
	Shown   string      `json:"shown"`
	Left    *string     `json:"left"`
}

type redactIn struct {
	Pattern string `flag:"pattern" doc:"text that the regular expression {RE} (RE2) finds"`
	Secrets bool   `flag:"secrets" doc:"keys and tokens of well-known shapes, by the rules of gitleaks"`
	Context string `flag:"context" doc:"only in the conversation {CTX}"`
	dryRunFlag
	yesFlag
}

// finder returns what finds the secrets in a text.
func (in *redactIn) finder() (func(string) ([]record.Secret, error), error) {
	if (in.Pattern != "") == in.Secrets {
		return nil, &usageError{"redact needs --pattern RE or --secrets", "chatctx redact --secrets --dry-run"}
	}
	if in.Secrets {
		return func(text string) ([]record.Secret, error) {
			found, err := secrets.Find(text)
			out := make([]record.Secret, len(found))
			for i, m := range found {
				out[i] = record.Secret{From: m.From, To: m.To, What: m.Rule}
			}
			return out, err
		}, nil
	}
	re, err := regexp.Compile(in.Pattern)
	if err != nil {
		return nil, usagef("--pattern: %v", err)
	}
	if re.MatchString("") || re.MatchString(chatctx.RedactedMark) {
		return nil, usagef("--pattern matches the empty text, or %s: make it narrower", chatctx.RedactedMark)
	}
	return func(text string) ([]record.Secret, error) {
		var out []record.Secret
		for _, at := range re.FindAllStringIndex(text, -1) {
			out = append(out, record.Secret{From: at[0], To: at[1], What: "pattern"})
		}
		return out, nil
	}, nil
}

func doRedact(r *run, in *redactIn) error {
	r.common.Context = cmp.Or(in.Context, r.common.Context) // for the lines that it proposes
	find, err := in.finder()
	if err != nil {
		return err
	}
	st, err := r.writer()
	if err != nil {
		return err
	}
	o := record.RedactOptions{Context: in.Context, Find: find, DryRun: true}
	plan, err := st.Maintenance().Redact(r.ctx, o)
	if err != nil {
		return err
	}
	if in.DryRun || len(plan.Found) == 0 {
		return r.redacted(plan, in.DryRun)
	}
	if !r.json() {
		r.printRedactions(plan)
	}
	if err := r.confirm(in.yesFlag, "Redact it? Nothing brings it back.", usagef("redact changes messages for good: nothing brings them back")); err != nil {
		return err
	}
	o.DryRun = false
	done, err := st.Maintenance().Redact(r.ctx, o)
	if err != nil {
		return err
	}
	return r.redacted(done, false)
}

func leftIn(done *record.Redacted) int {
	left := 0
	for _, f := range done.Found {
		if f.Left != "" {
			left++
		}
	}
	return left
}

func (r *run) redacted(done *record.Redacted, dry bool) error {
	found := []redactionJSON{}
	for _, f := range done.Found {
		found = append(found, redactionJSON{f.Context, f.Title, idOrNull(f.Message), f.Field, f.What, f.Shown, stringOrNull(f.Left)})
	}
	left, blind := leftIn(done), notSearched(done)
	beside := done.Collected.Leftovers
	due, err := care.PurgeDue(r.ctx, base.Of(r.st))
	if err != nil {
		return err
	}
	complete := left == 0 && blind == "" && len(beside) == 0 && !due
	r.nameLeftovers(beside)
	counts := map[string]any{"dry_run": dry, "complete": complete, "redacted": len(found) - left, "left": left, "found": found, "not_searched": done.NotSearched}
	if len(beside) > 0 {
		counts["leftovers"] = beside
	}
	err = r.emit(counts, func() {
		r.printRedactions(done)
		r.printf("%s: %d; left as they are: %d\n", map[bool]string{true: "would be redacted", false: "redacted"}[dry], len(found)-left, left)
		if blind != "" {
			r.printf("not searchable: %s\n", blind)
		}
	})
	if err != nil || dry || complete {
		return err
	}
	if left == 0 && blind == "" {
		return errBeside()
	}
	return contract.Partly(errors.New("not everything could be redacted or searched"), "the rest is done")
}

// notSearched says how many files of which kind could not be searched.
func notSearched(done *record.Redacted) string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(done.NotSearched)) {
		kinds = append(kinds, count(done.NotSearched[kind], kind))
	}
	return strings.Join(kinds, ", ")
}

func (r *run) printRedactions(done *record.Redacted) {
	for _, f := range done.Found {
		where := titled(f.Title, f.Context)
		if f.Message != (chatctx.ID{}) {
			where = short(f.Message) + " of " + where
		}
		line := fmt.Sprintf("%s, %s: %s %s", where, f.Field, clean(f.What), oneLine(f.Shown))
		if f.Left != "" {
			line += "  (stays: " + f.Left + ")"
		}
		r.printf("%s\n", line)
	}
}
