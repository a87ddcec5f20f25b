package cli

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
)

func spaceCommands() []*command {
	return []*command{
		{name: "gc", does: "remove for good what nothing needs: old trash, old undo, and what only they hold", scope: onStore, run: in(doGC),
			more:    "It shows what would go, and asks. Messages that a branch, a tag, a pin, a session or the queue holds stay, and so does everything that undo of a kept operation needs.",
			json:    "dry_run, contexts, messages, operations, artifacts, bytes, older_than_seconds, kept{why: messages}, rewritten, leftovers[]",
			example: "chatctx gc --older-than 90d --dry-run"},
		{name: "purge"},
		redactCommand(),
		{name: "vacuum"},
	}
}

// age parses how long ago: 12h, 7d, 2w.
func age(s string) (time.Duration, error) {
	now := time.Now()
	t, err := when(s, now)
	if err != nil || t == 0 || !t.Time().Before(now) || now.Sub(t.Time()) == math.MaxInt64 {
		return 0, &usageError{fmt.Sprintf("no age %q", s), "write 12h, 7d or 2w"}
	}
	return now.Sub(t.Time()), nil
}

// byteSize parses a number of bytes: 1000, 500MB, 2GiB; "" is 0.
func byteSize(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	digits := strings.TrimRight(strings.TrimSpace(s), "KMGTiBkmgtb ")
	unit := strings.ToUpper(strings.TrimSpace(s[len(digits):]))
	factor, ok := map[string]float64{"": 1, "B": 1, "K": 1e3, "KB": 1e3, "M": 1e6, "MB": 1e6, "G": 1e9, "GB": 1e9, "T": 1e12, "TB": 1e12,
		"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}[unit]
	n, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(n > 0) || n*factor > math.MaxInt64/2 {
		return 0, &usageError{fmt.Sprintf("no size %q", s), "write 500MB, 2GB or 1500MiB"}
	}
	return int64(n * factor), nil
}

// collectedJSON is what gc removed or would remove.
type collectedJSON struct {
	DryRun     bool           `json:"dry_run"`
	Contexts   int            `json:"contexts"`
	Messages   int            `json:"messages"`
	Operations int            `json:"operations"`
	Artifacts  int            `json:"artifacts"`
	Bytes      int64          `json:"bytes"`
	OlderThan  int64          `json:"older_than_seconds"`
	Kept       map[string]int `json:"kept"`
	Rewritten  bool           `json:"rewritten"`
	Leftovers  []string       `json:"leftovers,omitempty"`
}

type gcIn struct {
	OlderThan      elapsed   `flag:"older-than" default:"30d" doc:"trash and operations older than {AGE}: 12h, 7d, 2w (without it 30d)"`
	KeepOperations int       `flag:"keep-operations" default:"100" doc:"in each conversation keep the newest {N} operations, whatever their age (without it 100)"`
	MaxSize        byteCount `flag:"max-size" doc:"shorten the age until the store uses at most {SIZE}: 500MB, 2GB"`
	dryRunFlag
	yesFlag
}

func doGC(r *run, in *gcIn) error {
	o := record.GCOptions{OlderThan: in.OlderThan.Duration, MaxSize: int64(in.MaxSize), KeepOperations: in.KeepOperations, DryRun: true}
	if o.KeepOperations < 0 {
		return usagef("gc --keep-operations takes a number of 0 or more")
	}
	st, err := r.writer()
	if err != nil {
		return err
	}
	plan, err := st.Maintenance().GC(r.ctx, o)
	if err != nil {
		return err
	}
	if in.DryRun {
		r.nothingGoes(plan, in)
		return r.collected(plan, true, false)
	}
	if r.nothingGoes(plan, in) {
		return r.collected(plan, false, false)
	}
	if !r.json() {
		r.printPlan("would go", plan)
	}
	if err := r.confirm(in.yesFlag, "Remove it for good?", usagef("gc removes for good: undo and restore cannot bring it back")); err != nil {
		return err
	}
	o.DryRun = false
	took, err := st.Maintenance().GC(r.ctx, o)
	if err != nil {
		return err
	}
	stats, err := st.Maintenance().Stats(r.ctx)
	if err == nil && stats.RewriteDue {
		err = st.Maintenance().Vacuum(r.ctx)
	}
	if err != nil {
		return err
	}
	return r.collected(took, false, stats.RewriteDue)
}

// nothingGoes reports whether a plan is empty, and then says why.
func (r *run) nothingGoes(plan *record.Collected, in *gcIn) bool {
	if plan.Contexts+plan.Messages+plan.Operations+plan.Artifacts > 0 || plan.Bytes > 0 {
		return false
	}
	r.note("nothing is removed: nothing in the trash, and no operation beyond the newest %[2]d of its conversation, is older than %[1]s", in.OlderThan.typed, in.KeepOperations)
	return true
}

func (r *run) collected(c *record.Collected, dry, rewritten bool) error {
	r.nameLeftovers(c.Leftovers)
	return r.emit(collectedJSON{dry, c.Contexts, c.Messages, c.Operations, c.Artifacts, c.Bytes, int64(c.OlderThan / time.Second), c.Kept, rewritten, c.Leftovers}, func() {
		r.printPlan(map[bool]string{true: "would go", false: "gone"}[dry], c)
		if rewritten {
			r.printf("the file was written anew\n")
		}
	})
}

func (r *run) printPlan(what string, c *record.Collected) {
	r.printf("%s: %s, %s, %s, %s; %s\n", what, count(c.Contexts, "conversation"), count(c.Messages, "message"), count(c.Operations, "operation"), count(c.Artifacts, "artifact"), size(c.Bytes))
	var kept []string
	for why, n := range c.Kept {
		kept = append(kept, fmt.Sprintf("on no branch, kept for %s: %s", why, count(n, "message")))
	}
	sort.Strings(kept)
	for _, line := range kept {
		r.printf("%s\n", line)
	}
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

type restoreFromIn struct {
	File string `arg:"FILE"`
	yesFlag
}

// doRestoreFrom puts a backup in the place of the store.
func doRestoreFrom(r *run, in *restoreFromIn) error {
	path, err := r.storePath()
	if err != nil {
		return err
	}
	if isURL(path) {
		if _, err := r.reader(); err != nil {
			return err
		}
		return r.keptInFile(kv.CareRestore)
	}
	if _, err := os.Lstat(path); err == nil {
		if err := r.confirm(in.yesFlag, "Put "+clean(in.File)+" in the place of "+clean(path)+"? That is kept beside it.", fmt.Errorf("%s %w", path, errExists)); err != nil {
			return err
		}
	}
	back, err := chatctx.Restore(r.ctx, path, in.File)
	if err != nil {
		return err
	}
	return r.emit(map[string]any{"store": path, "kept": stringOrNull(back.Kept), "contexts": back.Stats.Contexts, "messages": back.Stats.Messages}, func() {
		r.printf("%s is as it was in %s: %s, %s\n", clean(path), clean(in.File), count(back.Stats.Contexts, "conversation"), count(back.Stats.Messages, "message"))
		if back.Kept != "" {
			r.note("the store that was there is kept: %s", back.Kept)
			r.note("undo with: %s", r.again("restore-from --yes "+quote(back.Kept)))
		}
	})
}
