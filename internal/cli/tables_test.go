package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	xansi "github.com/charmbracelet/x/ansi"
)

// tabled runs a command as at a terminal of a width, and gives what it prints.
func tabled(t *testing.T, width int, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	con := newConsole(t.Context(), strings.NewReader(""), &out, &errs)
	con.tty, con.errs, con.color, con.width = true, true, true, width
	if err := execute(t.Context(), con, args); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, errs.String())
	}
	if err := con.out.close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestTablesFit: no line of a table is wider than the terminal, and on a wide one nothing is left out.
func TestTablesFit(t *testing.T) {
	t.Setenv("PAGER", "")
	t.Setenv("CHATCTX_STORE", filepath.Join(t.TempDir(), "chats.db"))
	t.Setenv("CHATCTX_CONTEXT", "")
	title := "旅行の計画 für Größenwahn " + strings.Repeat("長い題名 ", 8)
	for _, line := range [][]string{
		{"new", title},
		{"add", "user", "こんにちは、世界。 " + strings.Repeat("words and words ", 12)},
		{"add", "assistant", "Grüße " + strings.Repeat("長い言葉", 30)},
		{"fork", "枝の名前がとても長いので一行に収まらない"},
		{"fork", "b" + strings.Repeat("ranch", 12)},
		{"tag", "タグ" + strings.Repeat("tag", 15), "@1"},
		{"rules", "add", "deny", "殺す*", "--store", "--reason", strings.Repeat("理由がある ", 12)},
		{"tools", "add", "reader", "--", "cat", strings.Repeat("/とても/長い", 12)},
		{"sub", "start", "目標 " + strings.Repeat("and more ", 12)},
		{"label", "add", "ラベル" + strings.Repeat("label", 12), "旅行"},
		{"rename", "旅行", title + "!"},
	} {
		tabled(t, 80, line...)
	}
	calls := filepath.Join(t.TempDir(), "calls.jsonl")
	if err := os.WriteFile(calls, []byte(`{"role":"assistant","content":[{"type":"text","text":"Calling"}],"tool_calls":[{"id":"c1","tool_name":"reader","arguments":{"path":"`+strings.Repeat("/長い道", 30)+`"}}],"metadata":{"model_id":"gpt-長い-5","input_tokens":123456,"output_tokens":7890}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	tabled(t, 80, "append", calls)
	tables := [][]string{
		{"ls"}, {"branch"}, {"op", "log"}, {"calls", "ls"}, {"cost"}, {"cost", "--by", "context"}, {"cost", "--by", "branch"}, {"stats"}, {"stats", "--by-context"},
		{"log"}, {"tree"}, {"tag"}, {"rules", "ls"}, {"tools", "ls"}, {"sub", "ls"}, {"label", "ls"}, {"sessions"}, {"search", "words"}, {"tokens"}, {"explain", "--provider", "openai", "--model", "gpt-5"},
	}
	for _, width := range []int{40, 80, 200} {
		for _, table := range tables {
			t.Run(fmt.Sprintf("%s at %d", strings.Join(table, " "), width), func(t *testing.T) {
				text := tabled(t, width, table...)
				if strings.TrimSpace(text) == "" {
					t.Fatal("nothing was printed")
				}
				for _, line := range strings.Split(text, "\n") {
					if n := xansi.StringWidth(line); n > width {
						t.Errorf("%d columns: %s", n, xansi.Strip(line))
					}
				}
			})
		}
	}
}
