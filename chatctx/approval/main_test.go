package approval

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/pool"
)

// TestMain makes the test's program a tool, too: its first argument after the mark says which.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == toolMark {
		syscall.Exit(beTool(os.Args[2], os.Args[3:])) // os.Exit would write of coverage into the tool's output
	}
	os.Exit(m.Run())
}

const toolMark = "+tool"

func beTool(name string, args []string) int {
	switch name {
	case "args":
		return print1(json.NewEncoder(os.Stdout).Encode(args))
	case "env":
		return print1(json.NewEncoder(os.Stdout).Encode(os.Environ()))
	case "pwd":
		dir, err := os.Getwd()
		fmt.Println(dir)
		return print1(err)
	case "stdin":
		n, err := io.Copy(io.Discard, os.Stdin)
		fmt.Printf("read %d bytes\n", n)
		return print1(err)
	case "fail":
		fmt.Println("before it failed")
		return 3
	case "quiet":
		return 0
	case "flood":
		line := []byte(strings.Repeat("x", 1023) + "\n")
		w := bufio.NewWriterSize(os.Stdout, 1<<16)
		for range 1 << 20 { // 1 GiB
			if _, err := w.Write(line); err != nil {
				return 1
			}
		}
		return print1(w.Flush())
	case "lines":
		fmt.Print(strings.Repeat("0123456789abcde\n", 1<<15)) // 512 KiB
		return 0
	case "binary":
		os.Stdout.Write([]byte{0xff, 0xfe, 0, 1, 2})
		return 0
	case "hang", "leave":
		return hang(name, args)
	case "reap":
		return Reap(args)
	case "zeros":
		os.Stdout.WriteString("a\x00b")
		return 0
	case "die":
		killSelf()
	case "mcp-broken":
		return print1(brokenServer(os.Stdin, os.Stdout))
	case "wait":
		time.Sleep(time.Hour) // select {} is a deadlock to a program with nothing else under way
		return 0
	case "append":
		return appendLine(args[0], args[1])
	case "execute":
		return execute(args)
	case "mcp":
		return print1(testServer(nil).Run(context.Background(), &mcp.StdioTransport{}))
	case "decide":
		return decideAll(args)
	}
	return 9
}

func print1(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// hang starts a grandchild that holds the output and never ends, writes its id to a file, and waits with it, or leaves it behind.
func hang(name string, args []string) int {
	self, err := os.Executable()
	if err != nil {
		return print1(err)
	}
	child := exec.Command(self, toolMark, "wait")
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	if len(args) > 1 {
		goAway(child)
	}
	if err := child.Start(); err != nil {
		return print1(err)
	}
	if err := os.WriteFile(args[0], fmt.Append(nil, child.Process.Pid), 0o600); err != nil {
		return print1(err)
	}
	fmt.Println("started")
	if name == "leave" {
		return 0
	}
	return print1(child.Wait())
}

func appendLine(file, line string) int {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return print1(err)
	}
	if _, err := f.WriteString(line + "\n"); err != nil {
		return print1(err)
	}
	return print1(f.Close())
}

// brokenServer speaks as much of MCP as it takes to offer two tools, one of them with a schema that is none.
func brokenServer(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Protocol string `json:"protocolVersion"`
			} `json:"params"`
		}
		if err := json.Unmarshal(lines.Bytes(), &req); err != nil {
			return err
		}
		result := ""
		switch req.Method {
		case "initialize":
			result = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"broken","version":"1"}}`, req.Params.Protocol)
		case "tools/list":
			result = `{"tools":[{"name":"broken","inputSchema":{"type":"object","properties":{"a":{"type":"String"}}}},{"name":"good","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}]}`
		case "tools/call":
			result = `{"content":[{"type":"text","text":"good"}]}`
		}
		answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result)
		switch {
		case len(req.ID) == 0:
			continue
		case result == "":
			answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, req.ID)
		}
		if _, err := fmt.Fprintln(out, answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

// testServer is an MCP server whose tool sleep ends when release is closed, if it is not told to before.
func testServer(release <-chan struct{}) *mcp.Server {
	type in struct {
		Words string `json:"words"`
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "says it again"}, func(_ context.Context, _ *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
		if a.Words == "fail" {
			return nil, nil, fmt.Errorf("it was told to fail")
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "heard: " + a.Words}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "picture"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "look"}, &mcp.ImageContent{MIMEType: "image/png", Data: []byte("png")}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "who"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(os.Getpid())}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "sleep"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		select {
		case <-ctx.Done():
		case <-release:
		}
		return nil, nil, errors.New("it woke up")
	})
	return s
}

// self is a command that runs this program as a tool.
func self(t testing.TB, words ...string) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{exe, toolMark}, words...)
}

// bench is a store with one context, whose branch waits for nothing yet.
type bench struct {
	t     testing.TB
	store *chatctx.Store
	c     *chatctx.ChatContext
	file  string
	n     int
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{t: t, file: filepath.Join(t.TempDir(), "chats.db")}
	b.store = storetest.Open(t, b.file, chatctx.Options{Create: true, Program: "test", By: "ann", Judge: Rules{}})
	var err error
	if b.c, err = b.store.New(context.Background(), record.NewContext{Title: t.Name(), Messages: []*chatctx.Message{pool.NewText(pool.User, "go")}}); err != nil {
		t.Fatal(err)
	}
	return b
}

// tool keeps a tool with the context.
func (b *bench) tool(tool record.Tool) {
	b.t.Helper()
	batch := b.c.Begin("")
	batch.PutTool(tool)
	b.commit(batch)
}

func (b *bench) commit(batch *chatctx.Batch) *record.Committed {
	b.t.Helper()
	done, err := batch.Commit(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return done
}

// ask appends calls of tools in one message: a tool's name and arguments, in turn.
func (b *bench) ask(words ...string) *chatctx.Message {
	b.t.Helper()
	m := &chatctx.Message{Role: pool.Assistant}
	for i := 0; i < len(words); i += 2 {
		b.n++
		m.Calls = append(m.Calls, pool.Call{ID: fmt.Sprint("c", b.n), Tool: words[i], Arguments: json.RawMessage(words[i+1])})
	}
	if _, err := b.c.Append(context.Background(), "", m); err != nil {
		b.t.Fatal(err)
	}
	return m
}

func (b *bench) rule(effect, tool string) *record.Rule {
	b.t.Helper()
	r := &record.Rule{Effect: effect, Tool: tool}
	batch := b.c.Begin("")
	batch.AddRule(*r, record.RuleScope{})
	return b.commit(batch).Last().Rule
}

func (b *bench) call(id string) *record.Call {
	b.t.Helper()
	c, err := b.store.Call(context.Background(), "", "", record.CallRef(id))
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// runOne allows and runs one call of a tool and gives its result.
func (b *bench) runOne(e *Executor, tool, args string) *pool.Result {
	b.t.Helper()
	b.ask(tool, args)
	e.Context = b.c
	report, err := e.Run(context.Background(), "")
	if err != nil {
		b.t.Fatal(err)
	}
	if len(report.Ran) != 1 {
		b.t.Fatalf("ran %d calls, want one; %v wait", len(report.Ran), report.Waiting)
	}
	m, err := b.c.Message(context.Background(), report.Ran[0].Last().Placed[0].Message)
	if err != nil {
		b.t.Fatal(err)
	}
	return m.Result
}

// eventually waits for something that another process does.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain for " + what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
