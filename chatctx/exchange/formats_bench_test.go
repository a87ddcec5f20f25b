package exchange

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"github.com/chatctx/chatctx/chatctx/record"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// writeSessions writes Claude Code sessions of about mb megabytes in all into a folder, per megabytes each: prompts, replies in several lines with thoughts and
// calls, results with the program's data about them, progress records.
func writeSessions(dir string, mb, per int) (total int64, err error) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := 0; total < int64(mb)<<20; n++ {
		size, err := writeSession(filepath.Join(dir, fmt.Sprintf("%08d-0000-4000-8000-000000000000.jsonl", n)), r, per)
		if err != nil {
			return total, err
		}
		total += size
	}
	return total, nil
}

func writeSession(path string, r *rand.Rand, mb int) (int64, error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	var size int64
	parent, n := any(nil), 0
	line := func(typ string, message any, extra map[string]any) {
		n++
		id := fmt.Sprintf("%08x-1111-4222-8333-%012x", n, n)
		v := map[string]any{"type": typ, "uuid": id, "parentUuid": parent, "isSidechain": false, "sessionId": filepath.Base(path), "cwd": "/srv/kite", "version": "2.3.0",
			"gitBranch": "main", "userType": "external", "timestamp": "2026-03-04T08:00:00.000Z"}
		if message != nil {
			v["message"] = message
		}
		for k, x := range extra {
			v[k] = x
		}
		b, err := json.Marshal(v)
		if err == nil {
			w.Write(append(b, '\n'))
			size += int64(len(b)) + 1
		}
		parent = id
	}
	for turn := 0; size < int64(mb)<<20; turn++ {
		reply := func(block map[string]any) map[string]any {
			return map[string]any{"id": fmt.Sprintf("msg_%d", turn), "type": "message", "role": "assistant", "model": "claude-kite", "content": []any{block},
				"usage": map[string]any{"input_tokens": 100, "cache_read_input_tokens": 5000, "output_tokens": 40}}
		}
		line("user", map[string]any{"role": "user", "content": benchText(r, 30)}, nil)
		line("assistant", reply(map[string]any{"type": "thinking", "thinking": benchText(r, 80), "signature": benchText(r, 40)}), nil)
		line("assistant", reply(map[string]any{"type": "text", "text": benchText(r, 120)}), nil)
		call := fmt.Sprintf("toolu_%d", turn)
		line("assistant", reply(map[string]any{"type": "tool_use", "id": call, "name": "Read", "input": map[string]any{"file_path": "/srv/kite/main.go"}}), nil)
		line("progress", nil, map[string]any{"data": map[string]any{"type": "hook_progress"}})
		text := benchText(r, 100+r.IntN(900))
		line("user", map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": call, "content": text}}},
			map[string]any{"toolUseResult": map[string]any{"type": "text", "file": map[string]any{"filePath": "/srv/kite/main.go", "content": text}}})
	}
	return size, w.Flush()
}

func benchSessions(b *testing.B) (dir string, size int64) {
	b.Helper()
	dir = b.TempDir()
	size, err := writeSessions(dir, exportSize(), 20)
	if err != nil {
		b.Fatal(err)
	}
	return dir, size
}

// BenchmarkReadClaudeCode reads sessions of 20 MB each, without a store.
func BenchmarkReadClaudeCode(b *testing.B) {
	dir, size := benchSessions(b)
	b.SetBytes(size)
	for b.Loop() {
		var peak uint64
		rep, err := Read(context.Background(), []string{dir}, Options{}, func(*record.Incoming) error {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
			return nil
		})
		if err != nil || rep.Outcome() != Complete {
			b.Fatal(err, rep.Warnings)
		}
		b.ReportMetric(float64(rep.Messages), "messages")
		b.ReportMetric(float64(peak>>20), "MB-heap")
	}
}

// BenchmarkDecodeLinesAny measures encoding/json on the same lines.
func BenchmarkDecodeLinesAny(b *testing.B) {
	dir, size := benchSessions(b)
	b.SetBytes(size)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, name := range files {
			f, err := os.Open(name)
			if err != nil {
				b.Fatal(err)
			}
			for s := bufio.NewReaderSize(f, 1<<20); ; {
				line, err := s.ReadBytes('\n')
				if len(line) == 0 && err != nil {
					break
				}
				var v any
				if err := json.Unmarshal(line, &v); err != nil {
					b.Fatal(err)
				}
			}
			f.Close()
		}
	}
}
