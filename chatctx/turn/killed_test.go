package turn

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/storetest"
)

// stalled answers each request with pieces, and calls reached where the next one would come: by then the program has read, and done, all before it.
type stalled struct {
	pieces  []string
	reached func()
	left    []string
}

func (s *stalled) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.left = s.pieces; len(s.left) == 0 {
		s.reached()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(s), Request: r}, nil
}

func (s *stalled) Read(p []byte) (int, error) {
	if len(s.left) == 0 {
		s.reached()
		return 0, context.Canceled
	}
	n := copy(p, s.left[0])
	s.left = s.left[1:]
	return n, nil
}

// summing returns a turn of the conversation T of a store, whose requests are answered with the first n pieces of a summary.
func summing(t *testing.T, s *chatctx.Store, n int, reached func()) *Turn {
	c, err := s.Context(t.Context(), "T")
	if err != nil {
		t.Fatal(err)
	}
	events := []string{`{"type":"message_start","message":{"model":"claude-sonnet-4-5","usage":{"input_tokens":700,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"They counted"}}`}
	var pieces []string
	for _, e := range events[:n] {
		pieces = append(pieces, "data: "+e+"\n\n")
	}
	env := map[string]string{"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}
	return &Turn{Context: c, Getenv: func(name string) string { return env[name] }, HTTP: wire.Options{HTTP: &http.Client{Transport: &stalled{pieces: pieces, reached: reached}}}}
}

const killedFile, killedPieces = "CHATCTX_TEST_SUMMING", "CHATCTX_TEST_PIECES"

// TestAStoppedSummaryIsCounted: what a summary took is counted once, however the program ends while it comes: interrupted or killed, before the first word and after.
func TestAStoppedSummaryIsCounted(t *testing.T) {
	if file := os.Getenv(killedFile); file != "" { // the program that is killed
		n := 0
		fmt.Sscan(os.Getenv(killedPieces), &n)
		s, err := chatctx.Open(file, chatctx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = summing(t, s, n, func() {
			fmt.Println("reached")
			select {}
		}).Compact(t.Context())
		return
	}
	for _, kill := range []bool{true, false} {
		for _, pieces := range []int{0, 3} {
			t.Run(fmt.Sprintf("%t %d", kill, pieces), func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "s.db")
				open := func() *chatctx.Store {
					s, err := chatctx.Open(file, chatctx.Options{Create: true})
					if err != nil {
						t.Fatal(err)
					}
					return s
				}
				s := open()
				c, err := s.New(t.Context(), record.NewContext{Title: "T"})
				if err != nil {
					t.Fatal(err)
				}
				turn := &Turn{Context: c}
				talked(t, turn, 30)
				set(t, turn, `{"model":"claude-sonnet-4-5","retries":0,"budget":1500,"compact.keep":200}`)
				if kill {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					killSumming(t, file, pieces)
					s = open()
				} else {
					ctx, cancel := context.WithCancel(t.Context())
					if done, err := summing(t, s, pieces, cancel).Compact(ctx); err == nil {
						t.Errorf("compacted: %+v", done)
					}
				}
				defer storetest.Close(t, s)
				if c, err = s.Context(t.Context(), "T"); err != nil {
					t.Fatal(err)
				}
				for range 2 { // as it is seen, and after it was settled
					report, err := cost.Spent(t.Context(), s, cost.Query{})
					if err != nil || report.Replies != 1 || len(report.Kinds) != 1 || report.Kinds[0].Kind != "summary" || report.Input != int64(700*pieces/3) || report.WithoutUsage != 1-pieces/3 {
						t.Errorf("%v; counted %+v", err, report)
					}
					if err := c.SettleDead(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if n, err := c.Branch(t.Context(), ""); err != nil || n.Messages != 60 || len(n.Sessions) != 0 {
					t.Errorf("%v; the branch has %+v", err, n)
				}
			})
		}
	}
}

// killSumming kills a program at a point of a summary.
func killSumming(t *testing.T, file string, pieces int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestAStoppedSummaryIsCounted$")
	cmd.Env = append(os.Environ(), killedFile+"="+file, fmt.Sprintf("%s=%d", killedPieces, pieces))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	if strings.TrimSpace(line) != "reached" {
		t.Fatalf("it said %q", line)
	}
}
