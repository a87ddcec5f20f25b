package exchange

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// paths describes a conversation by the ids of its branches, the active one first: the subject of most tests.
func paths(in *record.Incoming) string {
	var b strings.Builder
	for _, br := range in.Branches {
		fmt.Fprintf(&b, "%s:", br.Name)
		for _, n := range pathTo(in, br.Leaf) {
			b.WriteString(" " + in.Nodes[n].ID)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// dump describes everything that a test may need of what was read.
func dump(all []*record.Incoming, rep *Report) string {
	var b strings.Builder
	for _, in := range all {
		fmt.Fprintf(&b, "== %s %s %q", in.Format, in.Conversation, in.Title)
		if in.Derived {
			b.WriteString(" derived")
		}
		if in.Parent != nil {
			fmt.Fprintf(&b, " parent %s", in.Parent.Conversation)
		}
		fmt.Fprintf(&b, " %s %s\n", timeText(in.Created), timeText(in.Updated))
		for k, v := range in.AppData {
			fmt.Fprintf(&b, "   data %s %s\n", k, v)
		}
		if in.System != "" {
			fmt.Fprintf(&b, "   system %q\n", in.System)
		}
		for i, n := range in.Nodes {
			fmt.Fprintf(&b, "%d<%d %s ", i, n.Parent-1, n.ID)
			dumpMessage(&b, &n)
		}
		b.WriteString(paths(in))
		for _, br := range in.Branches {
			for _, s := range br.Sessions {
				fmt.Fprintf(&b, "session of %s from %d, summary %t\n", br.Name, s.Start, s.Summary != pool.ID{})
			}
		}
	}
	fmt.Fprintf(&b, "-- files %d contexts %d messages %d branches %d skipped %d duplicated %d repaired %d structural %d skippedContexts %d failed %d\n",
		rep.Files, rep.Contexts, rep.Messages, rep.Branches, rep.Skipped, rep.Duplicated, rep.Repaired, rep.Structural, rep.SkippedContexts, rep.Failed)
	for _, w := range rep.Warnings {
		fmt.Fprintf(&b, "warning line %d index %d: %s\n", w.Line, w.Index, w.Text)
	}
	return b.String()
}

func timeText(t pool.Time) string {
	if t == 0 {
		return "-"
	}
	return t.Time().Format("2006-01-02T15:04:05.999999")
}

func dumpMessage(b *strings.Builder, n *record.Node) {
	m := n.Message
	fmt.Fprintf(b, "%s", m.Role)
	for _, flag := range []struct {
		on   bool
		name string
	}{{m.Kind != "", m.Kind}, {m.Hidden, "hidden"}, {m.Unsent, "unsent"}, {m.Unfinished, "unfinished"}, {n.Further, "further"},
		{n.CopyOf.Conversation != "", "copy of " + n.CopyOf.Conversation + " " + n.CopyOf.Node},
		{m.Source != nil && m.Source.Role != "", "role " + src(m).Role}, {m.Source != nil && m.Source.Raw != nil, "raw"}} {
		if flag.on {
			fmt.Fprintf(b, " [%s]", flag.name)
		}
	}
	fmt.Fprintf(b, " %s", timeText(m.Created))
	if m.Meta.Model+m.Meta.Provider+m.Meta.FinishReason+m.Meta.Error != "" {
		fmt.Fprintf(b, " model %s/%s %s %q", m.Meta.Provider, m.Meta.Model, m.Meta.FinishReason, m.Meta.Error)
	}
	for _, c := range []struct {
		name string
		n    *int64
	}{{"in", m.Meta.InputTokens}, {"out", m.Meta.OutputTokens}, {"read", m.Meta.CacheRead}, {"write", m.Meta.CacheWrite}, {"thought", m.Meta.ReasoningTokens}} {
		if c.n != nil {
			fmt.Fprintf(b, " %s=%d", c.name, *c.n)
		}
	}
	b.WriteString("\n")
	for i := range m.Content {
		dumpPart(b, &m.Content[i])
	}
	for _, c := range m.Calls {
		fmt.Fprintf(b, "     call %s %s %s %s/%s %s\n", c.ID, c.Tool, c.Arguments, c.Status, c.Execution, c.Reason)
	}
	if r := m.Result; r != nil {
		fmt.Fprintf(b, "     result of %s %s error=%t %q %s\n", r.RequestID, r.Tool, r.IsError, show.Clip(r.Text, 200), r.JSON)
		for i := range r.Parts {
			dumpPart(b, &r.Parts[i])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(m.Meta.ProviderData)) {
		fmt.Fprintf(b, "     data %s %s\n", k, show.Clip(string(m.Meta.ProviderData[k]), 300))
	}
}

func src(m *chatctx.Message) *pool.Source {
	if m.Source == nil {
		return &pool.Source{}
	}
	return m.Source
}

func dumpPart(b *strings.Builder, p *pool.Part) {
	fmt.Fprintf(b, "     %s %q", p.Type, show.Clip(p.Text, 200))
	if p.MediaType+p.Name+p.URL != "" || len(p.Data) > 0 {
		fmt.Fprintf(b, " %s %q %s %d bytes", p.MediaType, p.Name, p.URL, len(p.Data))
	}
	if p.Provider+p.Signature+p.Redacted != "" {
		fmt.Fprintf(b, " by %s/%s signed %q redacted %q", p.Provider, p.Model, p.Signature, p.Redacted)
	}
	if p.Raw != nil {
		fmt.Fprintf(b, " raw %s", show.Clip(string(p.Raw), 200))
	}
	b.WriteString("\n")
}

var shown = flag.String("show", "", "print what is read of this file or folder")

// TestShow prints the contents of a file, for people: go test -run TestShow -show FILE.
func TestShow(t *testing.T) {
	if *shown == "" {
		t.Skip("no -show")
	}
	all, rep := readAll(t, Options{}, *shown)
	fmt.Println(dump(all, rep))
}

// TestFormats reads the files of testdata/formats, each folder and file there as one argument, and compares with the golden files.
func TestFormats(t *testing.T) {
	names, err := filepath.Glob("testdata/formats/*/*")
	if err != nil || len(names) < 40 {
		t.Fatalf("%d inputs, %v", len(names), err)
	}
	for _, name := range names {
		if filepath.Ext(name) == ".golden" || filepath.Ext(name) == ".png" || strings.Contains(name, "/detection/") {
			continue
		}
		t.Run(strings.TrimPrefix(name, "testdata/formats/"), func(t *testing.T) {
			all, rep := readAll(t, Options{}, name)
			golden(t, name+".golden", dump(all, rep))
			for _, in := range all {
				if folder := filepath.Base(filepath.Dir(name)); in.Format != folder {
					t.Errorf("read as %s", in.Format)
				}
			}
		})
	}
}

// TestTextWithExamples: lines of JSON make no conversation where more lines are no JSON.
func TestTextWithExamples(t *testing.T) {
	line := ccText("user", "a", "", "first")
	path := writeTemp(t, "fixtures.py", "import json\n\ndef lines():\n    return 1\n\nLINES = [\n", line, line, "]\nprint(lines())\n")
	all, rep := readAll(t, Options{}, path)
	if len(all) != 0 || rep.Failed != 1 || len(rep.Warnings) != 1 || !strings.Contains(rep.Warnings[0].Text, "not a known format: text that begins with") {
		t.Errorf("a program with examples gives %d conversations, %v", len(all), rep.Warnings)
	}
	path = writeTemp(t, "session.jsonl", "not json\n", line, ccText("assistant", "b", "a", "last"))
	if all, rep := readAll(t, Options{}, path); len(all) != 1 || rep.Skipped != 1 || rep.Outcome() != Partial {
		t.Errorf("a session with a bad line gives %d conversations, %v", len(all), rep.Warnings)
	}
}

// TestOverlappingMembers refuses a ZIP whose directory names the same bytes again and again.
func TestOverlappingMembers(t *testing.T) {
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	w, err := z.CreateHeader(&zip.FileHeader{Name: "0.json", Method: zip.Store})
	if err == nil {
		_, err = io.WriteString(w, strings.Repeat(ccText("user", "a", "", "first"), 50))
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	raw := packed.Bytes()
	at := bytes.Index(raw, []byte("PK\x01\x02"))
	end := bytes.Index(raw, []byte("PK\x05\x06"))
	entry, tail := raw[at:end], bytes.Clone(raw[end:])
	binary.LittleEndian.PutUint16(tail[8:], 3)
	binary.LittleEndian.PutUint16(tail[10:], 3)
	binary.LittleEndian.PutUint32(tail[12:], uint32(3*len(entry)))
	path := writeTemp(t, "overlap.zip", string(raw[:at]), strings.Repeat(string(entry), 3), string(tail))
	all, rep := readAll(t, Options{}, path)
	if len(all) != 0 || rep.Failed != 1 || !strings.Contains(fmt.Sprint(rep.Warnings), "members overlap") {
		t.Errorf("%d conversations, %v", len(all), rep.Warnings)
	}
}

// TestDetection reads a small file of each format from one folder: each is read as its own format.
func TestDetection(t *testing.T) {
	all, rep := readAll(t, Options{}, "testdata/formats/detection")
	if rep.Files != 42 || len(all) != 42 || rep.Outcome() != Complete {
		t.Errorf("%d files, %d conversations, %v", rep.Files, len(all), rep.Warnings)
	}
	names, err := filepath.Glob("testdata/formats/detection/*")
	if err != nil || len(names) != len(all) {
		t.Fatal(names, err)
	}
	for i, in := range all {
		number, format, _ := strings.Cut(strings.TrimSuffix(filepath.Base(names[i]), filepath.Ext(names[i])), "-")
		text := strings.TrimLeft(number, "0")
		if in.Format != format || len(in.Nodes) != 1 || in.Nodes[0].Message.Text() != text {
			t.Errorf("%s: read as %s, %d messages", names[i], in.Format, len(in.Nodes))
		}
	}
}
