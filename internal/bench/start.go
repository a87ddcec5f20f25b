package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// benchStart measures what a command takes before it does anything, and what the first count of tokens adds.
func benchStart(r *run) []row {
	bin, dir := program(r), r.dir
	source, line := in(dir, "line.go"), in(dir, "line")
	must(os.WriteFile(source, []byte("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"a line\") }\n"), 0o600))
	must(exec.Command("go", "build", "-o", line, source).Run())
	bare, _ := usual(40, func() {}, line, dir)
	start, _ := usual(40, func() {}, bin, dir, "version")
	more := start - bare
	rows := []row{{"version: more than a program that prints a line", more.Round(100 * time.Microsecond).String(), "at most 12 ms", more <= 12*time.Millisecond}}

	file := in(dir, "counted")
	s, _ := filled(file, 1)
	must(s.Close())
	for _, encoding := range []string{"o200k_base", "cl100k_base", "p50k_base", "r50k_base"} {
		args := []string{"tokens", "--encoding", encoding}
		add := func() {
			s := value(chatctx.Open(file, chatctx.Options{}))
			value(value(s.Context(context.Background(), "")).Append(context.Background(), "", pool.NewText(pool.User, "a wonderful day")))
			must(s.Close())
		}
		took, memory := usual(20, add, bin, file, args...)
		none, least := usual(20, func() {}, bin, file, args...) // the counts are kept
		mb := float64(memory-least) / (1 << 20)
		rows = append(rows, row{"the first count by " + encoding + ": more than a kept one", fmt.Sprintf("%s, %.1f MB", (took - none).Round(100*time.Microsecond), mb),
			"at most 60 ms, 20 MB", took-none <= 60*time.Millisecond && mb <= 20})
	}
	return rows
}

// usual returns the median time of a call, before which it prepares, and its usual memory.
func usual(times int, prepare func(), bin, store string, args ...string) (time.Duration, int64) {
	var all, memory []time.Duration
	for range times {
		prepare()
		took, rss := call(bin, store, args...)
		all, memory = append(all, took), append(memory, time.Duration(rss))
	}
	return percentile(all, 0.5), int64(percentile(memory, 0.5))
}
