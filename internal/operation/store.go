package operation

import (
	"context"
	"errors"
	"io/fs"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/engine"
)

func init() { Register(Group{Heading: "The file", Of: fileOperations}) }

func fileOperations() []*Operation {
	return []*Operation{
		Define("store.check", "GET", Read, "look for damage", checkStore).As("check", "chatctx check --full").With("Exit code 12: it found damage."),
		Define("store.stats", "GET", Read, "show what the store holds, and its size", storeStats).As("stats", "chatctx stats --json"),
		Define("store.vacuum", "POST", Admin, "write the file anew, without free space", vacuumStore).As("vacuum", "chatctx vacuum").
			With("Other programs wait meanwhile, and go on with the new file."),
		Define("store.init", "POST", Admin, "make an empty store, in a file or on a PostgreSQL server", initStore).Creating().With(initHelp).
			As("init", "chatctx init --store 'postgres://me@db.example.org/team?search_path=chats'"),
		Define("store.grant", "GET", Admin, "say what a user of the database may do with a store on a server: owner, writer, reader or none", grantStore).With(grantHelp).
			As("grant", "chatctx grant writer ann").Fails("not_found"),
	}
}

const initHelp = `Other commands make a file where there is none, and nothing on a server: there the database's owner runs chatctx init once. The URL names the database, and the schema by search_path
(else chatctx). A store that is there already is a conflict (5).`

const grantHelp = `The server itself holds users to it, whatever program they use: a reader reads, a writer also changes records, an owner may also change and drop the tables, and grant. USER has to be a role of the
database already (create role USER login). Only the store's owner can grant, and needs the right to make roles (createrole).`

// Made is a new store.
type Made struct {
	Store string     `json:"store"`
	ID    chatctx.ID `json:"id"`
}

func initStore(r *Request, _ *struct{}) (Made, error) {
	id, err := r.Store.ID(r.Ctx)
	return Made{r.Name, id}, err
}

// Grant is what a user of the database may do. It changes no record, so a store that is only read takes it.
type Grant struct {
	Role engine.Role `json:"role" arg:"ROLE" words:"owner writer reader none" doc:"what the user may do"`
	User string      `json:"user" arg:"USER" doc:"a role of the database"`
}

func grantStore(r *Request, in *Grant) (Grant, error) {
	g, is := base.Of(r.Store).Engine.(engine.Granter)
	if !is {
		return *in, base.Invalid("grant is for stores on a server; who may use a file is the file's own mode")
	}
	err := g.Grant(r.Ctx, in.Role, in.User)
	if errors.Is(err, fs.ErrNotExist) {
		err = &record.RefError{Kind: "user of the database", Ref: in.User}
	}
	return *in, err
}

// Checking says how much is read.
type Checking struct {
	Full bool `json:"full,omitempty" flag:"full" doc:"read every page, every record, every artifact"`
}

// Checked is what a check found.
type Checked struct {
	OK        bool             `json:"ok"`
	Problems  []record.Problem `json:"problems"`
	Leftovers []string         `json:"leftovers,omitempty"` // files of other programs that may hold what the store held
}

func checkStore(r *Request, in *Checking) (Checked, error) {
	v, err := Check(r.Ctx, r.Store, in.Full)
	v.Leftovers = care.Leftovers(base.Of(r.Store))
	return v, err
}

// Check looks for damage in an open store.
func Check(ctx context.Context, st *chatctx.Store, full bool) (Checked, error) {
	v := Checked{Problems: []record.Problem{}}
	err := st.Maintenance().Check(ctx, chatctx.CheckOptions{Full: full}, func(p record.Problem) { v.Problems = append(v.Problems, p) })
	v.OK = len(v.Problems) == 0
	return v, err
}

// Measuring says what is measured.
type Measuring struct {
	ByContext bool `json:"by_context,omitempty" flag:"by-context" doc:"what each conversation takes, the largest first"`
}

// Sizes are the store's figures, or those of each conversation.
type Sizes struct {
	record.Stats
	ByContext []ContextSize `json:"-" when:"by-context"`
}

// ContextSize is the space that a conversation takes.
type ContextSize struct {
	*record.ContextSpace
	Trashed bool `json:"trashed"`
}

func storeStats(r *Request, in *Measuring) (v Sizes, err error) {
	if !in.ByContext {
		stats, err := r.Store.Maintenance().Stats(r.Ctx)
		if err == nil {
			v.Stats = *stats
		}
		return v, err
	}
	all, err := care.SpaceByContext(r.Ctx, base.Of(r.Store))
	list, err := ListEach(all, err, func(c *record.ContextSpace) ContextSize { return ContextSize{c, c.Trashed != 0} })
	return Sizes{ByContext: list.Items}, err
}

// Rewritten is the size of a file before and after it was written anew.
type Rewritten struct {
	Before int64 `json:"file_bytes_before"`
	After  int64 `json:"file_bytes"`
	Format int   `json:"format"`
}

func vacuumStore(r *Request, _ *struct{}) (v Rewritten, err error) {
	if err := r.keptInFile(kv.CareVacuum); err != nil {
		return v, err
	}
	before, err := r.Store.Maintenance().Stats(r.Ctx)
	if err == nil {
		err = r.Store.Maintenance().Vacuum(r.Ctx)
	}
	if err != nil {
		return v, err
	}
	after, err := r.Store.Maintenance().Stats(r.Ctx)
	if err != nil {
		return v, err
	}
	return Rewritten{before.File, after.File, base.Of(r.Store).Format.Number()}, nil
}

// keptInFile returns the error of an operation that concerns a file if a server keeps the store: it says what to do instead.
func (r *Request) keptInFile(of kv.Care) error {
	if on, is := base.Of(r.Store).Engine.(engine.Hosted); is {
		return base.Invalid("%s", on.Instead(of))
	}
	return nil
}
