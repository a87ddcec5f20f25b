package exchange_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/exchange"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/exchangetest"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// minutes is the format of another program: a first line that says so, then "speaker: text"; "see FILE" names a file beside it.
var minutes = exchange.Format{
	Name:   "minutes",
	Detect: func(beginning []byte) bool { return bytes.HasPrefix(beginning, []byte("MINUTES\n")) },
	Read: func(r *exchange.Reading) error {
		in := &record.Incoming{Conversation: r.Path(), Branches: []record.IncomingBranch{{Name: "main"}}}
		lines := bufio.NewScanner(r.Content())
		for n := 1; lines.Scan(); n++ {
			who, text, ok := strings.Cut(lines.Text(), ": ")
			if name, see := strings.CutPrefix(text, "see "); see {
				b, err := r.Beside(name, 100)
				if err != nil {
					r.Warn(n, err.Error())
				}
				text = string(b)
			}
			switch {
			case n == 1:
			case !ok:
				r.Skip(1, n, "a line without a speaker")
			default:
				i := len(in.Nodes)
				in.Nodes = append(in.Nodes, record.Node{ID: fmt.Sprint(n), Parent: i, Message: pool.NewText(pool.Role(who), text)})
				in.Branches[0].Leaf = i + 1
			}
		}
		if err := lines.Err(); err != nil {
			return err
		}
		return r.Emit(in)
	},
}

func init() {
	exchange.Register(minutes)
	exchange.RegisterExport(exchange.ExportFormat{Name: "heads", Extension: ".txt", What: "a title", Write: func(ctx context.Context, w *exchange.Writing) error {
		info, err := w.Context.Info(ctx)
		fmt.Fprintln(w.Out, info.Title)
		return err
	}})
}

// TestRegistered imports a registered format like any other and exports into one.
func TestRegistered(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"talk.txt": "MINUTES\nuser: where to?\nassistant: see plan.txt\nnobody\nuser: see ../secret\n",
		"plan.txt": "to the sea",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := exchangetest.MemoryStore(t)
	rep, err := exchange.Import(t.Context(), s, []string{filepath.Join(dir, "talk.txt")}, exchange.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if rep.Messages != 3 || rep.Skipped != 1 || rep.Outcome() != exchange.Partial || rep.Imported[0].Format != "minutes" {
		t.Errorf("%+v", rep)
	}
	if w := rep.Warnings; len(w) != 2 || w[0].Line != 4 || !strings.Contains(w[1].Text, "leaves its folder") {
		t.Errorf("warned of %+v", w)
	}
	var b bytes.Buffer
	if err := exchange.Export(t.Context(), s, exchange.ExportOptions{Format: "heads", Context: rep.Imported[0].Context}, &b); err != nil || b.String() != "where to?\n" {
		t.Errorf("exported %q, %v", b.String(), err)
	}
	var md bytes.Buffer
	if err := exchange.Export(t.Context(), s, exchange.ExportOptions{Format: "markdown", Context: rep.Imported[0].Context}, &md); err != nil || !strings.Contains(md.String(), "to the sea") {
		t.Errorf("the file beside it was not read: %q, %v", md.String(), err)
	}
	if err := exchange.Export(t.Context(), s, exchange.ExportOptions{Format: "html"}, &b); err == nil {
		t.Error("a page was written though nobody imports its package")
	}
}

// TestRegisterRefuses checks that a name can be registered only once, and not one of the package's own formats.
func TestRegisterRefuses(t *testing.T) {
	read := minutes
	for name, f := range map[string]func(){
		"import twice":      func() { exchange.Register(read) },
		"an own name":       func() { x := read; x.Name = "chatgpt"; exchange.Register(x) },
		"without a name":    func() { x := read; x.Name = ""; exchange.Register(x) },
		"without detection": func() { exchange.Register(exchange.Format{Name: "x", Read: read.Read}) },
		"an own export": func() {
			exchange.RegisterExport(exchange.ExportFormat{Name: "markdown", Write: exchange.ExportFormats()[0].Write})
		},
		"without Write": func() { exchange.RegisterExport(exchange.ExportFormat{Name: "x"}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: taken", name)
				}
			}()
			f()
		}()
	}
}
