package exchange

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

var update = flag.Bool("update", false, "write the golden files anew")

// describe describes what a reader made from files, for golden files.
func describe(all []*record.Incoming, rep *Report) string {
	var b bytes.Buffer
	for _, in := range all {
		fmt.Fprintf(&b, "%s %s %q", in.Format, in.Conversation, in.Title)
		if in.Derived {
			b.WriteString(" derived")
		}
		fmt.Fprintf(&b, " created %s updated %s\n", at(in.Created), at(in.Updated))
		for _, name := range sortedKeys(in.AppData) {
			fmt.Fprintf(&b, "  data %s %s\n", name, in.AppData[name])
		}
		for i, n := range in.Nodes {
			fmt.Fprintf(&b, "  %d < %d %s ", i, n.Parent-1, n.ID)
			describeMessage(&b, n.Message)
		}
		for _, br := range in.Branches {
			fmt.Fprintf(&b, "  branch %q ends at %d\n", br.Name, br.Leaf-1)
		}
	}
	fmt.Fprintf(&b, "files %d contexts %d messages %d branches %d skipped %d duplicated %d repaired %d structural %d skipped_contexts %d failed %d\n", rep.Files,
		rep.Contexts, rep.Messages, rep.Branches, rep.Skipped, rep.Duplicated, rep.Repaired, rep.Structural, rep.SkippedContexts, rep.Failed)
	for _, w := range rep.Warnings {
		fmt.Fprintf(&b, "warning %s line %d index %d: %s\n", filepath.Base(w.File), w.Line, w.Index, w.Text)
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func at(t pool.Time) string {
	if t == 0 {
		return "-"
	}
	return t.Time().Format("2006-01-02T15:04:05.999999Z")
}

func describeMessage(b *bytes.Buffer, m *chatctx.Message) {
	fmt.Fprintf(b, "%s at %s", m.Role, at(m.Created))
	for _, f := range []struct {
		name string
		on   bool
	}{{"hidden", m.Hidden}, {"unsent", m.Unsent}, {"unfinished", m.Unfinished}} {
		if f.on {
			b.WriteString(" " + f.name)
		}
	}
	for _, f := range [][2]string{{"kind", m.Kind}, {"model", m.Meta.Model}, {"finish", m.Meta.FinishReason}, {"role", m.Source.Role}, {"raw", string(m.Source.Raw)}} {
		if f[1] != "" {
			fmt.Fprintf(b, " %s %q", f[0], f[1])
		}
	}
	b.WriteByte('\n')
	for i := range m.Content {
		describePart(b, "part", &m.Content[i])
	}
	for _, c := range m.Calls {
		fmt.Fprintf(b, "      call %s %s %s %s/%s %s\n", c.ID, c.Tool, c.Arguments, c.Status, c.Execution, c.Reason)
	}
	if r := m.Result; r != nil {
		fmt.Fprintf(b, "      result of %s by %q error %v %q %s\n", r.RequestID, r.Tool, r.IsError, r.Text, r.JSON)
		for i := range r.Parts {
			describePart(b, "result part", &r.Parts[i])
		}
	}
	for _, name := range sortedKeys(m.Meta.ProviderData) {
		fmt.Fprintf(b, "      provider %s %s\n", name, m.Meta.ProviderData[name])
	}
}

func describePart(b *bytes.Buffer, what string, p *pool.Part) {
	fmt.Fprintf(b, "      %s %s %q", what, p.Type, p.Text)
	for _, s := range []string{p.CallID, p.Name, p.MediaType, p.URL, string(p.Raw)} {
		if s != "" {
			b.WriteString(" " + s)
		}
	}
	if p.Data != nil {
		fmt.Fprintf(b, " %d bytes", len(p.Data))
	}
	b.WriteByte('\n')
}

// golden compares text with a file, or writes it with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			t.Fatalf("%s, line %d:\n got %s\nwant %s", path, i+1, g[i], append(w, make([]string, len(g))...)[i])
		}
	}
	t.Fatalf("%s has %d lines, got %d", path, len(w), len(g))
}

// TestReadChatGPT reads each file of testdata/chatgpt and compares the whole result with a golden file beside it.
func TestReadChatGPT(t *testing.T) {
	files, err := filepath.Glob("testdata/chatgpt/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no inputs in testdata/chatgpt", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".json"), func(t *testing.T) {
			all, rep := readAll(t, Options{}, f)
			golden(t, strings.TrimSuffix(f, ".json")+".golden", describe(all, rep))
		})
	}
}
