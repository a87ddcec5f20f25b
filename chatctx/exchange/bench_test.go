package exchange

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
)

// exportSize is the size of the export that the benchmarks read, in MB; CHATCTX_EXPORT_MB changes it.
func exportSize() int {
	if n, err := strconv.Atoi(os.Getenv("CHATCTX_EXPORT_MB")); err == nil && n > 0 {
		return n
	}
	return 200
}

var benchWords = []string{
	"river", "because", "the", "a", "stone", "runs", "through", "café", "of", "and", "function", "returns", "value", "naïve", "then",
	"ask", "again", "little", "house", "\n\n", "“quoted”", "list", "under", "water", "1,024", "日本", "which", "is", "not", "why",
}

func benchText(r *rand.Rand, words int) string {
	b := make([]byte, 0, words*6)
	for range words {
		b = append(append(b, benchWords[r.IntN(len(benchWords))]...), ' ')
	}
	return string(b)
}

// writeExport writes a ChatGPT export of about mb megabytes, one line as the real ones: conversations of 2 to 80 messages
// with branches, metadata and tool calls.
func writeExport(path string, mb int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	r := rand.New(rand.NewPCG(1, 2))
	w.WriteByte('[')
	for n, size := 0, 0; size < mb<<20; n++ {
		if n > 0 {
			w.WriteString(", ")
		}
		b, err := json.Marshal(benchConversation(r, n))
		if err != nil {
			return err
		}
		w.Write(b)
		size += len(b)
	}
	w.WriteByte(']')
	return w.Flush()
}

func benchConversation(r *rand.Rand, n int) map[string]any {
	mapping := map[string]any{}
	parent := fmt.Sprintf("%08x-0000-4000-8000-000000000000", n)
	mapping[parent] = map[string]any{"id": parent, "message": nil, "parent": nil, "children": []string{}}
	last := ""
	for i := range 2 + r.IntN(78) {
		id := fmt.Sprintf("%08x-0000-4000-8000-%012x", n, i+1)
		role, words := "user", 30
		if i%2 == 1 {
			role, words = "assistant", 60+r.IntN(300)
		}
		mapping[id] = map[string]any{"id": id, "parent": parent, "children": []string{}, "message": map[string]any{
			"id": id, "author": map[string]any{"role": role, "name": nil, "metadata": map[string]any{}},
			"create_time": 1700000000.5 + float64(n*1000+i), "update_time": nil,
			"content": map[string]any{"content_type": "text", "parts": []string{benchText(r, words)}},
			"status":  "finished_successfully", "end_turn": i%2 == 1, "weight": 1.0, "recipient": "all", "channel": nil,
			"metadata": map[string]any{
				"model_slug": "gpt-4o", "request_id": fmt.Sprintf("req-%d-%d", n, i), "timestamp_": "absolute", "message_type": nil,
				"parent_id": parent, "finish_details": map[string]any{"type": "stop", "stop_tokens": []int{200002}}, "citations": []any{},
				"content_references": []any{}, "is_complete": true,
			},
		}}
		if r.IntN(10) > 0 { // otherwise the next message is a sibling
			parent = id
		}
		last = id
	}
	id := fmt.Sprintf("conversation-%d", n)
	return map[string]any{
		"id": id, "conversation_id": id, "title": benchText(r, 5), "create_time": 1.7e9, "update_time": 1.7e9 + 5, "mapping": mapping,
		"current_node": last, "default_model_slug": "gpt-4o", "is_archived": false, "moderation_results": []any{}, "safe_urls": []any{},
	}
}

func benchExport(b *testing.B) (path string, size int64) {
	b.Helper()
	path = filepath.Join(b.TempDir(), "conversations.json")
	if err := writeExport(path, exportSize()); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return path, info.Size()
}

// BenchmarkReadChatGPT reads a large export, without a store.
func BenchmarkReadChatGPT(b *testing.B) {
	path, size := benchExport(b)
	b.SetBytes(size)
	for b.Loop() {
		rep, err := Read(context.Background(), []string{path}, Options{}, func(*record.Incoming) error { return nil })
		if err != nil || rep.Outcome() != Complete {
			b.Fatal(err, rep.Warnings)
		}
		b.ReportMetric(float64(rep.Messages), "messages")
	}
}

// BenchmarkImportChatGPT imports a large export into a file. It reports the most memory that the process had.
func BenchmarkImportChatGPT(b *testing.B) {
	path, size := benchExport(b)
	b.SetBytes(size)
	for b.Loop() {
		s, err := chatctx.Open(filepath.Join(b.TempDir(), "chats.db"), chatctx.Options{Create: true})
		if err != nil {
			b.Fatal(err)
		}
		rep, err := Import(context.Background(), s, []string{path}, Options{})
		if err != nil || rep.Outcome() != Complete {
			b.Fatal(err, rep.Warnings)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(peakMemory(b), "MB-peak")
}

// peakMemory returns the most resident memory of the process so far, in MB; 0 if the system does not tell.
func peakMemory(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if kb, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.Atoi(strings.Fields(kb)[0])
			if err != nil {
				b.Fatal(err)
			}
			return float64(n) / 1024
		}
	}
	return 0
}

// BenchmarkDecodeAny measures encoding/json on the same bytes.
func BenchmarkDecodeAny(b *testing.B) {
	path, size := benchExport(b)
	b.SetBytes(size)
	for b.Loop() {
		text, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			b.Fatal(err)
		}
	}
}
