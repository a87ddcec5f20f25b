package exchange

import (
	"bufio"
	"bytes"
	"context"
	"github.com/chatctx/chatctx/chatctx/record"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// addSeeds gives a fuzz target the files that match. It fails if there are none, so that a target never passes without seeds.
func addSeeds(f *testing.F, patterns ...string) {
	f.Helper()
	n := 0
	for _, p := range patterns {
		files, err := filepath.Glob(p)
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
			n++
		}
	}
	if n == 0 {
		f.Fatalf("no seeds in %s", strings.Join(patterns, ", "))
	}
}

// FuzzImport reads any bytes as a file: detection and every reader, whichever the bytes lead to. Nothing panics or hangs, and the store accepts what is read.
func FuzzImport(f *testing.F) {
	addSeeds(f, "testdata/*/*.json", "testdata/*/*.jsonl", "testdata/*/*/*.json", "testdata/*/*/*.jsonl")
	f.Add([]byte(zipOf(f, member{"conversations.json", one("a")}, member{"x/y.zip", zipOf(f, member{"c.json", one("b")})})))
	f.Add([]byte(gzipOf(f, one("a"))))
	f.Fuzz(func(t *testing.T, text []byte) {
		fuzzRead(t, text)
	})
}

// FuzzChatGPT reads any bytes as a ChatGPT export, past detection.
func FuzzChatGPT(f *testing.F) {
	addSeeds(f, "testdata/chatgpt/*.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		var got []*record.Incoming
		r := newFuzzReading(text, func(in *record.Incoming) error {
			checkIncoming(t, in)
			got = append(got, in)
			return nil
		})
		r.format = "chatgpt"
		if err := readChatGPT(r); err != nil && !strings.Contains(err.Error(), "cut off") {
			t.Fatal(err)
		}
		nodes := 0
		for _, in := range got {
			nodes += len(in.Nodes)
		}
		if rep := r.report; nodes > 0 && rep.Messages != 0 {
			t.Fatal("the reader counts messages itself")
		}
	})
}

func newFuzzReading(text []byte, sink func(*record.Incoming) error) *reading {
	rep := &Report{limit: 1000}
	im := newImporter(context.Background(), Options{Limits: fuzzLimits}, rep, sink)
	h := newHead(text, true)
	return &reading{ctx: context.Background(), file: &file{name: "fuzz"}, head: h, buf: bufioOf(text), limits: im.limits, report: rep, sink: sink, native: im.native}
}

// fuzzLimits keep a fuzz target from spending its time on size alone.
var fuzzLimits = Limits{Item: 1 << 20, Line: 1 << 20, Unpacked: 1 << 20, Ratio: 10, Spool: 1 << 20, Members: 50}

func fuzzRead(t *testing.T, text []byte) {
	t.Helper()
	rep, err := Read(context.Background(), []string{"-"}, Options{Stdin: strings.NewReader(string(text)), Limits: fuzzLimits}, func(in *record.Incoming) error {
		checkIncoming(t, in)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if rep.Outcome() == Nothing && len(rep.Warnings) == 0 {
		t.Fatal("nothing was read and nothing said about it")
	}
}

func bufioOf(text []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(text)) }
