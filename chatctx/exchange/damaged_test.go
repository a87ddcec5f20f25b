package exchange

import (
	"bytes"
	"fmt"
	"github.com/chatctx/chatctx/chatctx/record"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAnyLineMayBeDamaged: in each format of lines any one line may be lost, the first too. It is reported with its place, the file keeps its format, and only that line's
// message is missing.
func TestAnyLineMayBeDamaged(t *testing.T) {
	files, err := filepath.Glob("testdata/formats/*/*.jsonl")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Split(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n"))
		if strings.Contains(file, "hostile") || len(lines) < 3 {
			continue
		}
		good, _ := readAll(t, Options{}, file)
		first := 0
		if good[0].Format == "vscode-chat" || slices.Contains([]string{"codex/bare-lines.jsonl", "goose/20250307_100000.jsonl"}, strings.TrimPrefix(file, "testdata/formats/")) {
			first = 1 // all other lines change what the first one has, or nothing else says whose they are
		}
		for i, line := range lines[:min(len(lines)-1, 12)] {
			if i < first || len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			for how, damaged := range map[string][]byte{"zeros": make([]byte, len(line)), "cut": line[:len(line)/2]} {
				t.Run(fmt.Sprintf("%s/%d/%s", strings.TrimPrefix(file, "testdata/formats/"), i+1, how), func(t *testing.T) {
					text := bytes.Join(slices.Concat(lines[:i], [][]byte{damaged}, lines[i+1:]), []byte("\n"))
					path := filepath.Join(t.TempDir(), filepath.Base(file))
					if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
						t.Fatal(err)
					}
					all, rep := readAll(t, Options{}, path)
					named := slices.ContainsFunc(rep.Warnings, func(w Warning) bool { return w.Line == i+1 })
					if len(all) == 0 || all[0].Format != good[0].Format || !named || rep.Outcome() == Complete {
						t.Fatalf("%d conversations of %q, outcome %v, line %d is named: %v; %v", len(all), formatsOf(all), rep.Outcome(), i+1, named, rep.Warnings)
					}
					if lost := messagesOf(good) - messagesOf(all); lost > 2 && len(good) == 1 { // a call and its result may be on one line
						t.Errorf("%d of %d messages are lost with one line", lost, messagesOf(good))
					}
				})
			}
		}
	}
}

func formatsOf(all []*record.Incoming) (names []string) {
	for _, in := range all {
		names = append(names, in.Format)
	}
	return slices.Compact(names)
}

func messagesOf(all []*record.Incoming) (n int) {
	for _, in := range all {
		n += len(in.Nodes)
	}
	return n
}
