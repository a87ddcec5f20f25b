package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/chatctx/chatctx/chatctx"
)

// program builds the command line and returns its path.
func program(r *run) string {
	out := in(r.dir, "chatctx")
	top := value(exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/chatctx/chatctx").Output())
	cmd := exec.Command("go", "build", "-o", out, "./cmd/chatctx")
	cmd.Dir = strings.TrimSpace(string(top))
	cmd.Stderr = os.Stderr
	must(cmd.Run())
	return out
}

// call runs the program, and returns how long it took and the most memory it had, in bytes. A small process starts it, because a child's figure begins with its
// parent's memory.
func call(bin, store string, args ...string) (time.Duration, int64) {
	cmd := exec.Command(value(os.Executable()), append([]string{"measure", bin}, args...)...)
	cmd.Env = append(os.Environ(), "CHATCTX_STORE="+store, "NO_COLOR=1")
	out, err := cmd.Output()
	if failed := (&exec.ExitError{}); errors.As(err, &failed) {
		err = fmt.Errorf("%v: %w: %s", args, err, failed.Stderr)
	}
	must(err)
	var took, memory int64
	value(fmt.Sscan(string(out), &took, &memory))
	return time.Duration(took), memory
}

// measure is that small process.
func measure(args []string) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	start := time.Now()
	must(cmd.Run())
	fmt.Println(time.Since(start).Nanoseconds(), cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss<<10)
}

func benchMillion(r *run) []row {
	bin, store := program(r), in(r.dir, "million")
	n := r.n(1_000_000)
	s, _ := filled(store, n)
	must(s.Close())
	var rows []row
	for _, args := range [][]string{{"log", "-n", "20"}, {"ls"}} {
		var ours, bare []time.Duration
		var memory, base int64
		for range 40 {
			took, rss := call(bin, store, args...)
			ours, memory = append(ours, took), max(memory, rss)
			took, rss = call(bin, store, "version")
			bare, base = append(bare, took), max(base, rss)
		}
		more := percentile(ours, 0.5) - percentile(bare, 0.5)
		mb := float64(memory-base) / (1 << 20)
		rows = append(rows, row{fmt.Sprintf("%s on %d messages: more than version", strings.Join(args, " "), n),
			fmt.Sprintf("%.1f ms, %.1f MB", float64(more.Microseconds())/1000, mb), "under 5 ms, 20 MB", more < 5*time.Millisecond && mb < 20})
	}
	return rows
}

// busy is a process that works beside the measured one: it appends, or reads, without pause until it is killed.
func busy(what, file string) {
	ctx := context.Background()
	s := value(chatctx.Open(file, chatctx.Options{}))
	c := value(s.Context(ctx, ""))
	fmt.Println("ready")
	for i := 0; ; i++ {
		if what == "append" {
			value(c.Append(ctx, "", message(i)))
			continue
		}
		value(c.Look(ctx, "", 50))
	}
}

// start runs n processes of busy, and returns a function that ends them.
func start(what, file string, n int) (stop func()) {
	var all []*exec.Cmd
	for range n {
		cmd := exec.Command(value(os.Executable()), "busy", what, file)
		cmd.Stderr = os.Stderr
		out := value(cmd.StdoutPipe())
		must(cmd.Start())
		value(bufio.NewReader(out).ReadString('\n'))
		all = append(all, cmd)
	}
	return func() {
		for _, cmd := range all {
			must(cmd.Process.Kill())
			_ = cmd.Wait() // it was killed
		}
	}
}

func benchBeside(r *run) []row {
	bin, file := program(r), in(r.dir, "beside")
	s, _ := filled(file, 1000)
	must(s.Close())
	var rows []row
	stop := start("append", file, 1)
	for _, args := range [][]string{{"log", "-n", "20"}, {"add", "user", "hello"}} {
		var all []time.Duration
		for range r.n(200) {
			took, _ := call(bin, file, args...)
			all = append(all, took)
		}
		p99 := percentile(all, 0.99)
		rows = append(rows, row{strings.Join(args[:1], " ") + " beside a program that appends: p99", fmt.Sprintf("%s (p50 %s)", p99.Round(100*time.Microsecond),
			percentile(all, 0.5).Round(100*time.Microsecond)), "under 50 ms", p99 < 50*time.Millisecond})
	}
	stop()
	stop = start("read", file, 6)
	defer stop()
	var all []time.Duration
	for range r.n(200) {
		took, _ := call(bin, file, "add", "user", "hello")
		all = append(all, took)
	}
	p99 := percentile(all, 0.99)
	return append(rows, row{"add beside six that read: p99", fmt.Sprintf("%s (p50 %s)", p99.Round(100*time.Microsecond),
		percentile(all, 0.5).Round(100*time.Microsecond)), "under 100 ms", p99 < 100*time.Millisecond})
}

// export writes a ChatGPT export of about size bytes.
func export(file string, size int) {
	f := value(os.Create(file))
	w := bufio.NewWriterSize(f, 1<<20)
	written := value(w.WriteString("["))
	for c := 0; written < size; c++ {
		nodes := map[string]any{"root": map[string]any{"id": "root", "message": nil, "parent": nil, "children": []string{"n0"}}}
		for i := range 40 {
			id := fmt.Sprintf("n%d", i)
			parent, children := "root", []string{}
			if i > 0 {
				parent = fmt.Sprintf("n%d", i-1)
			}
			if i < 39 {
				children = append(children, fmt.Sprintf("n%d", i+1))
			}
			nodes[id] = map[string]any{"id": id, "parent": parent, "children": children, "message": map[string]any{
				"id": id, "author": map[string]any{"role": []string{"user", "assistant"}[i%2], "metadata": map[string]any{}},
				"create_time": 1700000000.5 + float64(i), "status": "finished_successfully", "weight": 1, "recipient": "all",
				"content":  map[string]any{"content_type": "text", "parts": []string{text(c*40 + i)}},
				"metadata": map[string]any{"model_slug": "gpt-4o", "request_id": fmt.Sprint(c, i), "timestamp_": "absolute"}}}
		}
		if c > 0 {
			written += value(w.WriteString(","))
		}
		raw := value(json.Marshal(map[string]any{"id": fmt.Sprint("c", c), "conversation_id": fmt.Sprint("c", c), "title": fmt.Sprint("Conversation ", c),
			"create_time": 1700000000.5, "update_time": 1700001000.5, "mapping": nodes, "current_node": "n39"}))
		written += value(w.Write(raw))
	}
	value(w.WriteString("]"))
	must(w.Flush())
	must(f.Close())
}

func benchImport(r *run) []row {
	bin, file := program(r), in(r.dir, "conversations.json")
	export(file, r.n(200<<20))
	var memory int64
	i := 0
	median, low, high, took := ratio(3, func() {
		i++
		_, rss := call(bin, in(r.dir, fmt.Sprint("import", i)), "import", file)
		memory = max(memory, rss)
	}, func() {
		f := value(os.Open(file))
		var v any
		must(json.NewDecoder(f).Decode(&v))
		must(f.Close())
		runtime.KeepAlive(v)
	})
	mb := float64(memory) / (1 << 20)
	return []row{{fmt.Sprintf("import of %d MB: to encoding/json into any", value(os.Stat(file)).Size()>>20),
		fmt.Sprintf("%s, %s, %.0f MB", spread(median, low, high), took.Round(time.Millisecond), mb), "at most 2, under 200 MB", median <= 2 && mb < 200}}
}

// benchSession imports one session of 200 MB from each of the three tools whose sessions grow that large.
func benchSession(r *run) []row {
	bin := program(r)
	var rows []row
	for i, kind := range []string{"claude-code", "codex", "chatgpt"} {
		file := in(r.dir, kind+".jsonl")
		session(file, kind, r.n(200<<20))
		took, rss := call(bin, in(r.dir, fmt.Sprint("session", i)), "import", file)
		mb := float64(rss) / (1 << 20)
		rows = append(rows, row{fmt.Sprintf("import of one session of %d MB, %s", value(os.Stat(file)).Size()>>20, kind),
			fmt.Sprintf("%.0f MB, %s", mb, took.Round(time.Millisecond)), "under 300 MB", mb < 300})
		must(os.Remove(file))
	}
	return rows
}

// session writes a session of about size bytes, with prompts, answers and results of a few kilobytes.
func session(file, kind string, size int) {
	f := value(os.Create(file))
	w := bufio.NewWriterSize(f, 1<<20)
	written := 0
	put := func(v any) { written += value(w.Write(append(value(json.Marshal(v)), '\n'))) }
	if kind == "chatgpt" {
		value(w.WriteString(`[{"conversation_id":"c","title":"large","create_time":1700000000.5,"mapping":{"n0":{"id":"n0","message":null,"parent":null}`))
	}
	parent := any(nil)
	for i := 1; written < size; i++ {
		said := strings.Repeat(text(i)+" ", 20)
		id := fmt.Sprint("n", i)
		at := time.Unix(1_700_000_000+int64(i), 0).UTC()
		role := []string{"user", "assistant"}[i%2]
		switch kind {
		case "claude-code":
			put(map[string]any{"type": role, "uuid": id, "parentUuid": parent, "sessionId": "s", "timestamp": at,
				"message": map[string]any{"role": role, "id": id, "content": []any{map[string]any{"type": "text", "text": said}}}})
			parent = id
		case "codex":
			put(map[string]any{"type": "response_item", "timestamp": at, "payload": map[string]any{"type": "message", "role": role,
				"content": []any{map[string]any{"type": "text", "text": said}}}})
		case "chatgpt":
			value(fmt.Fprintf(w, ",%q:", id))
			put(map[string]any{"id": id, "parent": fmt.Sprint("n", i-1), "message": map[string]any{"id": id, "author": map[string]any{"role": role},
				"content": map[string]any{"content_type": "text", "parts": []string{said}}}})
		}
	}
	if kind == "chatgpt" {
		value(w.WriteString(`}}]`))
	}
	must(w.Flush())
	must(f.Close())
}
