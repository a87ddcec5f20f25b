package chatctx_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// readersOfReplies are the functions that give a model's reply, or the text of a message that may be one.
var readersOfReplies = map[string]bool{
	"pool.Message.Text": true, "pool.Message.Content": true, "turn.Outcome.Reply": true, "turn.Outcome.Replies": true, "wire.Stream.Read": true, "enhancer.Completer.Complete": true,
	"window.Answer.Text": true,
}

// askers are the functions that return how a reply ended, and those that return only what has been asked about.
var askers = map[string]bool{
	"pool.OutcomeOf": true, "pool.Message.Whole": true, "pool.Message.Ending": true, "pool.Message.Refusal": true, "pool.Message.Blank": true, "window.Ask": true,
	"turn.Refusal": true, "turn.isEmpty": true, "screen.OutcomeText": true, "cli.refusal": true,
}

// TestRepliesAreAsked finds each function outside of the tests that reads the text of a message or a model's reply, by the types in the sources, and holds that it asks
// how the reply ended, or that the table says why it need not.
func TestRepliesAreAsked(t *testing.T) {
	found, asking := map[string]bool{}, 0
	for _, p := range checkedPackages(t) {
		if why := asTheyAre[p.room]; why != "" {
			found[p.room] = true
			continue
		}
		for _, f := range p.functions() {
			if f.asks && f.reads {
				asking++
			}
			if !f.reads || f.asks {
				continue
			}
			found[f.name] = true
			if needNotAsk[f.name] == "" {
				t.Errorf("%s reads a reply or a message's text and does not ask how it ended: use Message.Whole or pool.OutcomeOf, or say in needNotAsk why it need not", f.name)
			}
		}
	}
	if asking < 15 {
		t.Errorf("only %d functions were found that read a reply and ask", asking)
	}
	for name := range maps.All(needNotAsk) {
		if !found[name] {
			t.Errorf("needNotAsk names %s, which reads no reply without asking", name)
		}
	}
	for room := range maps.All(asTheyAre) {
		if !found[room] {
			t.Errorf("asTheyAre names %s, which is no room", room)
		}
	}
}

// asTheyAre are rooms whose work is to carry messages unchanged, with the reason.
var asTheyAre = map[string]string{
	"pool": "says what a message is", "internal/poolstore": "stores messages", "internal/care": "keeps the file", "internal/intake": "takes messages in", "internal/find": "finds every word that is stored",
	"internal/base": "passes texts to the embedder's hook", "adapter": "sends a history as it is", "internal/provider/anthropic": "reads and writes a provider's format",
	"internal/provider/openai": "reads and writes a provider's format", "internal/provider/responses": "reads and writes a provider's format", "adapter/wire": "carries replies with their ends",
	"internal/provider/binding": "ties a reply to its request", "internal/provider/wiretest": "tests adapters", "adapter/adaptertest": "tests adapters", "internal/tokens": "counts what is sent", "internal/cluster": "tests a server",
	"chatctx/exchange": "reads and writes other programs' files; those for people show how a message ended (internal/show, Message.Refusal)",
}

// needNotAsk are functions that read a message's text whatever a reply's end, with the reason.
var needNotAsk = map[string]string{
	// what is stored, sent or counted as it came
	"chatctx.*Store.encodePartial": "stores what has arrived, marked unfinished", "internal/journal.*Txn.appendEdited": "stores a person's edit",
	"internal/window.artifactsOf": "looks for large outputs", "internal/window.content": "hashes what is sent", "internal/window.*steps.shortenAnswer": "shortens what is sent",
	"internal/window.*once.Complete": "hands replies on", "internal/window.complete": "hands replies on to Ask", "chatctx/turn.*completer.Complete": "hands replies on", "chatctx/turn.*keeper.read": "hands replies on", "chatctx/turn.*Outcome.Reply": "hands replies on",
	"chatctx/turn.*Outcome.spent": "adds up tokens, which are paid however a reply ended", "chatctx/turn.*sending.stored": "notes what is on the branch",
	"chatctx/turn.*Answer.Kept": "asks whether calls of a first round may have run", "chatctx/turn.ReadReplay": "takes the questions, and the tokens of the old answers",
	"internal/operation.textFor": "quotes what was said; sayCalls says that it broke off",
	// texts that no model's reply is
	"internal/window.SummaryParts": "of a stored summary, which Ask let in", "internal/window.SummaryText": "of a stored summary, which Ask let in", "internal/window.partsOf": "of a stored summary, which Ask let in",
	"internal/window.*summary.message": "builds a summary", "internal/window.*steps.narrowDigest": "of a stored digest, which Ask or rules made", "internal/task.tellParent": "builds the message about a task",
	"internal/cli.attach": "builds a user's message", "internal/cli.*run.newMessage": "builds a message of a person", "internal/cli.*run.sendMessage": "builds a user's message",
	"internal/operation.*Request.entitle": "an Answer that Ask let in",
	// what a person sees, copies or edits, with the state of the message beside it
	"internal/screen.Body": "StateWords stands beside it", "internal/screen.Preview": "Saying or StateWords stands beside it", "internal/screen.*page.lines": "StateWords stands beside it",
	"internal/ui.*model.askEdit": "a person edits it", "internal/ui.*model.edits": "a person edits it", "internal/ui.*model.copyHere": "a person copies what is shown", "internal/ui.*model.sendOn": "a person sends it on",
	"internal/cli.*run.editedText": "a person edits it", "internal/cli.spokenText": "StateWords stands before it", "internal/cli.*logPrinter.finds": "finds every word", "internal/operation.*Request.saveParts": "saves attachments", "internal/operation.show": "the message with its outcome is the answer",
	"internal/operation.*TreeReader.fork": "names a fork by its first words",
	"internal/cli.*run.entryOf":           "finds a reply's place on the branch", "internal/cli.*run.answeredApart": "prints the line after an answer, which names its end",
	"internal/cli.*run.asksAgain": "asks whether anything came", "internal/view.Reader.describe": "names a message by its first words", "internal/view.DescribeName": "names a message by its first words",
	"internal/view.firstWords": "names a message by its first words", "internal/journal.*telling.words": "names what an operation changed",
	"internal/journal.*Txn.DeriveTitle": "the first words of a conversation, not an answer", "chatctx/turn.*Turn.beginning": "the beginning of a conversation, for its title",
	"chatctx/compare.messageText": "compares what was said; Figures has the outcome", "chatctx/compare.*Table.WriteMarkdown": "names the common message; Figures has the outcome",
	"chatctx/compare.*Table.WriteHTML": "names the common message; Figures has the outcome",
	"internal/window.*gatherer.add":    "a digest by rules quotes facts that were said", "internal/window.messageText": "the text for digests by rules; transcriptLine adds how an answer ended",
}

// checkedPackage is a package of the project with the types of its expressions.
type checkedPackage struct {
	room  string
	files []*ast.File
	info  *types.Info
}

// checkedPackages checks the types of all packages of the project, with the compiler's export data for what they import.
func checkedPackages(t *testing.T) (all []*checkedPackage) {
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,Dir,GoFiles,Module", "./...")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	type listed struct {
		ImportPath, Export, Dir string
		GoFiles                 []string
	}
	exports, own := map[string]string{}, []listed{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if exports[p.ImportPath] = p.Export; strings.HasPrefix(p.ImportPath, module) {
			own = append(own, p)
		}
	}
	fset := token.NewFileSet()
	from := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range own {
		c := &checkedPackage{room: strings.TrimPrefix(p.ImportPath, module), info: &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}, Uses: map[*ast.Ident]types.Object{}}}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			c.files = append(c.files, file)
		}
		if _, err := (&types.Config{Importer: from}).Check(p.ImportPath, fset, c.files, c.info); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// checkedFunction says what a function does with replies.
type checkedFunction struct {
	name        string
	reads, asks bool
}

// functions returns the package's functions.
func (c *checkedPackage) functions() (all []*checkedFunction) {
	for _, file := range c.files {
		for _, d := range file.Decls {
			decl, ok := d.(*ast.FuncDecl)
			if !ok || decl.Body == nil {
				continue
			}
			f := &checkedFunction{name: c.room + "." + decl.Name.Name}
			if decl.Recv != nil {
				f.name = c.room + "." + types.ExprString(decl.Recv.List[0].Type) + "." + decl.Name.Name
			}
			written := writtenFields(decl.Body)
			ast.Inspect(decl.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					name := c.nameOf(n)
					f.reads = f.reads || readersOfReplies[name] && !slices.Contains(written, ast.Expr(n))
					f.asks = f.asks || askers[name]
				case *ast.Ident:
					if fn, ok := c.info.Uses[n].(*types.Func); ok {
						f.asks = f.asks || askers[ofPackage(fn)+"."+fn.Name()]
					}
				}
				return true
			})
			all = append(all, f)
		}
	}
	return all
}

// writtenFields are the expressions that a body only assigns to.
func writtenFields(body *ast.BlockStmt) (out []ast.Expr) {
	ast.Inspect(body, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok {
			out = append(out, a.Lhs...)
		}
		return true
	})
	return out
}

// nameOf returns the name of a selected field or function: package, the type that declares it, name.
func (c *checkedPackage) nameOf(n *ast.SelectorExpr) string {
	s := c.info.Selections[n]
	if s == nil { // a name of a package
		if o := c.info.Uses[n.Sel]; o != nil {
			return ofPackage(o) + "." + o.Name()
		}
		return ""
	}
	owner := s.Recv()
	for _, i := range s.Index()[:len(s.Index())-1] { // the embedded types on the way
		owner = structOf(owner).Field(i).Type()
	}
	if p, ok := types.Unalias(owner).(*types.Pointer); ok {
		owner = p.Elem()
	}
	named, ok := types.Unalias(owner).(*types.Named)
	if !ok {
		return ""
	}
	return ofPackage(named.Obj()) + "." + named.Obj().Name() + "." + s.Obj().Name()
}

func structOf(t types.Type) *types.Struct {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	return t.Underlying().(*types.Struct)
}

// ofPackage returns the last part of the path of an object's package.
func ofPackage(o types.Object) string {
	if o.Pkg() == nil {
		return ""
	}
	return o.Pkg().Name()
}
