package operation

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/secrets"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/chatctx/chatctx/internal/plural"
)

func init() {
	Register(Group{Heading: "Space and erasure", Of: removalOperations})
	Register(Group{Heading: "The file", Of: copyOperations})
}

func removalOperations() []*Operation {
	return []*Operation{
		Define("store.gc", "POST", Admin, "remove for good what nothing needs: old trash, old undo, and what only they hold", collectGarbage).As("gc", "chatctx gc --age 90d --dry-run").
			With("It shows what would go, and asks. Messages that a branch, a tag, a pin, a session or the queue holds stay, and so does everything that undo of a kept operation needs."),
		Define("store.redact", "POST", Admin, "put "+chatctx.RedactedMark+" in place of secrets in everything that is stored", redact).As("redact", "chatctx redact --secrets --dry-run").With(redactHelp),
	}
}

const redactHelp = `It shows what it found, and asks. Files of text keep their encoding (UTF-8, UTF-16, UTF-32, Windows-1252, or the charset of their media type; without one, texts in GBK, Big5, Shift-JIS, EUC-JP and EUC-KR are searched by their ASCII alone). Parts that a provider has signed and files that are no text but show a secret stay and are named: purge their messages if they have to go. The conversations lose their undo, the search index follows, and the file is written anew.
Nothing brings a secret back. Earlier copies of the file still have it. Files in which nothing can be found, such as images and archives, are counted; with one of them, or where something stays, it was done in part (8).`

func copyOperations() []*Operation {
	return []*Operation{
		Define("store.copy", "POST", Admin, "move a store with everything in it from a file to a server or another file, or copy it from a server", copyStore).With(copyHelp).
			As("copy", "chatctx copy chats.db 'postgres://me@db.example.org/team?search_path=chats'"),
		Define("store.backup", "GET", Admin, "write a copy of the store while it is in use", backUp).With("A backup is a store. FILE is complete or not there at all.").
			As("backup", "chatctx backup ~/chats-copy.db\nchatctx backup --verify ~/chats-copy.db"),
		Define("store.restore", "POST", Admin, "put a backup in the place of the store", restoreFrom).As("restore-from", "chatctx restore-from ~/chats-copy.db").
			With("The whole backup is read first; a damaged one is refused. The old store is kept next to it."),
		Define("store.repair", "POST", Admin, "mend what check finds, after a backup; or read what can be read of a broken file into a new one", repair).With(repairHelp).
			As("repair", "chatctx repair --dry-run\nchatctx repair --broken broken.db --store rescued.db"),
	}
}

const copyHelp = `The journal with undo, the search index and everything else go along; claims of running programs end in the copy. TO must not be there yet, or be an empty store. A file moves: as soon as the copy begins, FROM no longer opens and says where the store went; --keep leaves it in use. A store on a server stays in use, and only its owner can copy it; --move moves it.
--reopen takes back a store that has moved; what was changed in the copy stays there. If a copy was cut short, the same command goes on with it. At the end TO is checked whole and has the same digest over all records.`

const repairHelp = `It shows what it would do, and asks. Readable messages stay; those that have lost their place go to the branch recovered; unreadable ones are only in the backup.
--from brings conversations, branches, messages, prompts, calls and artifacts; undo, tags, pins, rules and tools stay behind, and what was removed may come back.`

// Collecting says what gc may remove.
type Collecting struct {
	OlderThan      Age  `json:"older_than,omitempty" flag:"age" old:"older-than" default:"30d" doc:"trash and operations older than {AGE}: 12h, 7d, 2w (without it 30d)"`
	KeepOperations int  `json:"keep_operations,omitempty" flag:"keep-operations" default:"100" doc:"in each conversation keep the newest {N} operations, whatever their age (without it 100)"`
	MaxSize        Size `json:"max_size,omitempty" flag:"max-size" doc:"shorten the age until the store uses at most {SIZE}: 500MB, 2GB"`
	DryRun
	Unasked
}

// Writes says that also a dry run opens the store to write.
func (in *Collecting) Writes() bool { return true }

// Collected is what gc removed or would remove.
type Collected struct {
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

// Nothing reports whether there is nothing to remove.
func (c Collected) Nothing() bool {
	return c.Contexts+c.Messages+c.Operations+c.Artifacts == 0 && c.Bytes == 0
}

func collectGarbage(r *Request, in *Collecting) (v Collected, err error) {
	care := r.Store.Maintenance()
	o := record.GCOptions{OlderThan: in.OlderThan.Duration, MaxSize: int64(in.MaxSize), KeepOperations: in.KeepOperations, DryRun: true}
	of := func(c *record.Collected, rewritten bool) Collected {
		return Collected{in.Dry(), c.Contexts, c.Messages, c.Operations, c.Artifacts, c.Bytes, int64(c.OlderThan / time.Second), c.Kept, rewritten, c.Leftovers}
	}
	plan, err := care.GC(r.Ctx, o)
	if err != nil {
		return v, err
	}
	if v = of(plan, false); in.Dry() || v.Nothing() {
		return v, nil
	}
	o.DryRun = false
	took, err := care.GC(r.Ctx, o)
	if err != nil {
		return v, err
	}
	stats, err := care.Stats(r.Ctx)
	if err == nil && stats.RewriteDue {
		err = care.Vacuum(r.Ctx)
	}
	if err != nil {
		return v, err
	}
	return of(took, stats.RewriteDue), nil
}

// Redacting says what is a secret, and where.
type Redacting struct {
	Pattern string `json:"pattern,omitempty" flag:"pattern" doc:"text that the regular expression {RE} (RE2) finds"`
	Secrets bool   `json:"secrets,omitempty" flag:"secrets" doc:"keys and tokens of well-known shapes, by the rules of gitleaks"`
	Context string `json:"context,omitempty" flag:"context" doc:"only in the conversation {CTX}"`
	DryRun
	Unasked
	plan *Redacted // what was found before the question
}

// Writes says that also a dry run opens the store to write.
func (in *Redacting) Writes() bool { return true }

// Finder returns what finds the secrets in a text.
func (in *Redacting) Finder() (func(string) ([]record.Secret, error), error) {
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
		return nil, base.Invalid("--pattern: %v", err)
	}
	if re.MatchString("") || re.MatchString(chatctx.RedactedMark) {
		return nil, base.Invalid("--pattern matches the empty text, or %s: make it narrower", chatctx.RedactedMark)
	}
	return func(text string) ([]record.Secret, error) {
		var out []record.Secret
		for _, at := range re.FindAllStringIndex(text, -1) {
			out = append(out, record.Secret{From: at[0], To: at[1], What: "pattern"})
		}
		return out, nil
	}, nil
}

// Redacted is what was redacted, or would be.
type Redacted struct {
	Complete    bool           `json:"complete"`
	DryRun      bool           `json:"dry_run"`
	Found       []Redaction    `json:"found"`
	Left        int            `json:"left"`
	Leftovers   []string       `json:"leftovers,omitempty"`
	NotSearched map[string]int `json:"not_searched"`
	Redacted    int            `json:"redacted"`
}

// Redaction is a secret that was found.
type Redaction struct {
	Context chatctx.ID  `json:"context"`
	Title   string      `json:"title"`
	Message *chatctx.ID `json:"message"`
	Field   string      `json:"field"`
	What    string      `json:"what"`
	Shown   string      `json:"shown"`
	Left    *string     `json:"left"` // why it stays
}

// Nothing reports whether nothing was found.
func (v Redacted) Nothing() bool { return len(v.Found) == 0 }

// Blind says how many files of which kind could not be searched, "" for none.
func (v Redacted) Blind() string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(v.NotSearched)) {
		kinds = append(kinds, plural.Count(v.NotSearched[kind], kind))
	}
	return strings.Join(kinds, ", ")
}

func redact(r *Request, in *Redacting) (v Redacted, err error) {
	if in.plan != nil && in.plan.Nothing() && !in.Dry() {
		v = *in.plan
		v.DryRun = false
		return v, nil
	}
	find, err := in.Finder()
	if err != nil {
		return v, err
	}
	done, err := r.Store.Maintenance().Redact(r.Ctx, record.RedactOptions{Context: in.Context, Find: find, DryRun: in.Dry()})
	if err != nil {
		return v, err
	}
	v = Redacted{DryRun: in.Dry(), Found: []Redaction{}, Leftovers: done.Collected.Leftovers, NotSearched: done.NotSearched}
	for _, f := range done.Found {
		v.Found = append(v.Found, Redaction{f.Context, f.Title, contract.ID(f.Message), f.Field, f.What, f.Shown, contract.String(f.Left)})
		if f.Left != "" {
			v.Left++
		}
	}
	v.Redacted = len(v.Found) - v.Left
	due, err := care.PurgeDue(r.Ctx, base.Of(r.Store))
	v.Complete = v.Left == 0 && v.Blind() == "" && len(v.Leftovers) == 0 && !due
	if in.Dry() {
		in.plan = &v
	}
	return v, err
}

// Copying names two stores.
type Copying struct {
	From   string `json:"from,omitempty" arg:"[FROM]"`
	To     string `json:"to,omitempty" arg:"[TO]"`
	Keep   bool   `json:"keep,omitempty" flag:"keep-source" old:"keep" doc:"leave FROM in use; TO is a store of its own then (the default from a server)"`
	Move   bool   `json:"move,omitempty" flag:"move" doc:"FROM no longer opens, and says where the store went (the default from a file)"`
	Reopen bool   `json:"reopen,omitempty" flag:"reopen" doc:"take back FROM, or the store in use, which has moved: it opens again, and the copy goes on by itself"`
}

// Unopened says that the operation opens stores itself.
func (in *Copying) Unopened() bool { return true }

// Copied is a store's copy.
type Copied struct {
	Contexts int        `json:"contexts"`
	Digest   string     `json:"digest"`
	From     string     `json:"from"`
	Messages int        `json:"messages"`
	Records  int        `json:"records"`
	To       string     `json:"to"`
	Reopened []Reopened `json:"-" when:"reopen"`
}

// Reopened is a store that was taken back.
type Reopened struct {
	To    string `json:"moved_to"`
	Store string `json:"store"`
}

// shownStore returns a store's name as others may see it.
func shownStore(path string) string {
	if kv.Scheme(path) != "" {
		return engine.Shown(path)
	}
	return path
}

func copyStore(r *Request, in *Copying) (v Copied, err error) {
	open := chatctx.Options{Program: "chatctx", IdleHold: -1}
	if in.Reopen {
		store := in.From
		if store == "" {
			store = r.Path
		}
		to, err := care.Reopen(r.Ctx, store, open)
		return Copied{Reopened: []Reopened{{to, shownStore(store)}}}, err
	}
	next := time.Now().Add(time.Second)
	done, err := chatctx.CopyStore(r.Ctx, in.From, in.To, open, record.CopyOptions{
		Keep: in.Keep || kv.Scheme(in.From) != "" && !in.Move,
		Progress: func(records int) {
			if now := time.Now(); now.After(next) {
				next = now.Add(time.Second)
				r.progress(plural.Count(records, "record"))
			}
		},
	})
	if err != nil {
		return v, err
	}
	return Copied{done.Stats.Contexts, fmt.Sprintf("%x", done.Digest[:]), shownStore(in.From), done.Stats.Messages, done.Records, shownStore(in.To), nil}, nil
}

// progress says how far the operation has come.
func (r *Request) progress(text string) {
	if r.Progress != nil {
		r.Progress(text)
	}
}

// BackingUp names the file of a backup.
type BackingUp struct {
	File  string `json:"file" arg:"FILE"`
	Check bool   `json:"check,omitempty" flag:"verify" old:"check" doc:"write nothing: read the backup FILE whole and look for damage"`
	Yes   bool   `json:"-" flag:"yes" doc:"do not ask"`
}

// Unopened says that the operation reads another store.
func (in *BackingUp) Unopened() bool { return in.Check }

// BackedUp is a backup that was written, or what was found in one.
type BackedUp struct {
	Bytes  int64           `json:"bytes"`
	File   string          `json:"file"`
	Backup []CheckedBackup `json:"-" when:"check"`
}

// CheckedBackup is what was found in a backup.
type CheckedBackup struct {
	Checked
	Contexts int `json:"contexts"`
	Messages int `json:"messages"`
}

func backUp(r *Request, in *BackingUp) (v BackedUp, err error) {
	if in.Check {
		found, err := r.checkBackup(in.File)
		return BackedUp{Backup: []CheckedBackup{found}}, err
	}
	if err := r.keptInFile(kv.CareBackup); err != nil {
		return v, err
	}
	n, err := r.WriteFile(in.File, func(w io.Writer) error { return r.Store.Maintenance().Backup(r.Ctx, w) })
	return BackedUp{Bytes: n, File: in.File}, err
}

// checkBackup reads a whole backup.
func (r *Request) checkBackup(file string) (v CheckedBackup, err error) {
	st, err := chatctx.Open(file, chatctx.Options{ReadOnly: true, IdleHold: -1, Program: "chatctx"})
	if err != nil {
		return v, err
	}
	defer st.Close()
	if v.Checked, err = Check(r.Ctx, st, true); err != nil {
		return v, err
	}
	if stats, err := st.Maintenance().Stats(r.Ctx); err == nil { // else the problems say why
		v.Contexts, v.Messages = stats.Contexts, stats.Messages
	}
	return v, nil
}

// StoreRestoring names a backup.
type StoreRestoring struct {
	File string `json:"file" arg:"FILE"`
	Unasked
}

// Unopened says that the operation puts a file in the store's place.
func (in *StoreRestoring) Unopened() bool { return true }

// Restored is a store that is as it was in a backup.
type Restored struct {
	Contexts int     `json:"contexts"`
	Kept     *string `json:"kept"`
	Messages int     `json:"messages"`
	Store    string  `json:"store"`
}

func restoreFrom(r *Request, in *StoreRestoring) (v Restored, err error) {
	if r.Store != nil { // on a server
		if err := r.keptInFile(kv.CareRestore); err != nil {
			return v, err
		}
	}
	back, err := chatctx.Restore(r.Ctx, r.Path, in.File)
	if err != nil {
		return v, err
	}
	return Restored{back.Stats.Contexts, contract.String(back.Kept), back.Stats.Messages, r.Path}, nil
}

// Repairing says what is repaired.
type Repairing struct {
	From string `json:"from,omitempty" flag:"broken" old:"from" doc:"read whatever can still be read of the broken {FILE} into a new store, at --store"`
	DryRun
	Unasked
}

// Unopened says that the operation reads a broken file.
func (in *Repairing) Unopened() bool { return in.From != "" }

// Writes says that also a dry run opens the store to write.
func (in *Repairing) Writes() bool { return true }

// Sure reports whether a person need not be asked: a new store is no danger.
func (in *Repairing) Sure() bool { return in.Yes || in.From != "" }

// Repaired is what repair did or would do.
type Repaired struct {
	DryRun   bool             `json:"dry_run"`
	Backup   *string          `json:"backup"`
	Mended   []record.Problem `json:"mended"`
	Left     []record.Problem `json:"left"`
	Salvaged []Salvaged       `json:"-" when:"from"`
}

// Nothing reports whether there is nothing to mend.
func (v Repaired) Nothing() bool { return len(v.Mended) == 0 }

// Salvaged is what could be read of a broken file.
type Salvaged struct {
	Artifacts int              `json:"artifacts"`
	Branches  int              `json:"branches"`
	Contexts  int              `json:"contexts"`
	Mended    []record.Problem `json:"mended"`
	Messages  int              `json:"messages"`
}

func repair(r *Request, in *Repairing) (v Repaired, err error) {
	if in.From != "" {
		got, err := chatctx.Salvage(r.Ctx, in.From, r.Path, chatctx.Options{IdleHold: -1, Program: "chatctx"})
		if err != nil {
			return v, err
		}
		return Repaired{Salvaged: []Salvaged{{got.Artifacts, got.Branches, got.Contexts, problemsOf(got.Mended), got.Messages}}}, nil
	}
	o := record.RepairOptions{DryRun: true}
	done, err := r.Store.Maintenance().Repair(r.Ctx, o)
	if err == nil && !in.Dry() && len(done.Mended) > 0 {
		if o = (record.RepairOptions{Path: r.Path}); kv.Scheme(r.Path) != "" {
			o.Path = ""
		}
		done, err = r.Store.Maintenance().Repair(r.Ctx, o)
	}
	if err != nil {
		return v, err
	}
	return Repaired{in.Dry(), contract.String(done.Backup), problemsOf(done.Mended), append([]record.Problem{}, done.Left...), nil}, nil
}

// problemsOf returns what was mended as the problems that it was.
func problemsOf(mended []record.Mended) []record.Problem {
	out := make([]record.Problem, len(mended))
	for i, m := range mended {
		out[i] = record.Problem(m)
	}
	return out
}
