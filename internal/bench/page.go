package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// views are the addresses that the page reads again when something changed: the conversation on the screen and the lists beside it.
var views = []string{"/contexts?limit=50", "/contexts?limit=1000&labels=pinned", "%s", "%[1]s/branches/main", "%[1]s/branches/main/messages?from=-50", "%[1]s/branches/main/siblings?from=-50", "%[1]s/tree?limit=50",
	"%[1]s/branches/main/tokens?brief=true", "/calls?state=pending&limit=1000"}

// page is an open page: it listens to the stream of changes, and reads its views after them.
type page struct {
	client *http.Client
	base   string
	reads  atomic.Int64
	ended  atomic.Bool
}

func (p *page) get(path string) (io.ReadCloser, error) {
	res, err := p.client.Get(p.base + path)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s gives %d", path, res.StatusCode)
	}
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

func (p *page) read(conversation string) error {
	for _, view := range views {
		if strings.Contains(view, "%") {
			view = fmt.Sprintf(view, "/contexts/"+conversation)
		}
		body, err := p.get(view)
		if err == nil {
			_, err = io.Copy(io.Discard, body)
			body.Close()
		}
		if err != nil {
			return err
		}
	}
	p.reads.Add(1)
	return nil
}

// openPage starts the program's server and opens a page on it. stop ends both, and returns the most memory that the server had, in bytes.
func openPage(bin, file, conversation string) (p *page, stop func() int64) {
	cmd := exec.Command(bin, "--store", file, "web", "--no-open")
	cmd.Stderr = os.Stderr
	value(cmd.StdinPipe()) // stays open: an Enter on it asks for another address
	out := value(cmd.StdoutPipe())
	must(cmd.Start())
	address := strings.TrimSpace(value(bufio.NewReader(out).ReadString('\n')))
	root, _, _ := strings.Cut(address, "/open")
	jar := value(cookiejar.New(nil))
	p = &page{client: &http.Client{Jar: jar}, base: root + "/api/v1"}
	must(value(p.client.Get(address)).Body.Close())
	news := bufio.NewScanner(value(p.get("/changes")))
	changed := make(chan struct{}, 1)
	go func() {
		for news.Scan() {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
		close(changed)
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range changed {
			if err := p.read(conversation); !p.ended.Load() {
				must(err)
			}
		}
	}()
	return p, func() int64 {
		p.ended.Store(true)
		must(cmd.Process.Signal(os.Interrupt))
		_ = cmd.Wait() // it was interrupted
		select {
		case <-done:
		case <-time.After(time.Minute):
			panic("the page does not end")
		}
		return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	}
}

// benchPage measures add beside an open page on a store of 10,000 conversations, and the memory of the server.
func benchPage(r *run) []row {
	bin, file := program(r), in(r.dir, "page")
	s, c := filled(file, r.n(10_000))
	for i := range r.n(10_000) {
		value(s.New(context.Background(), record.NewContext{Title: fmt.Sprint("Conversation ", i), Stay: true, Messages: []*chatctx.Message{pool.NewText(pool.User, text(i))}}))
	}
	must(s.Close())
	add := func(n int) (all []time.Duration) {
		for range n {
			took, _ := call(bin, file, "add", "user", "hello")
			all = append(all, took)
		}
		return all
	}
	alone := percentile(add(r.n(200)), 0.5)
	p, stop := openPage(bin, file, c.ID.String())
	all := add(r.n(200))
	reads := p.reads.Load()
	memory := float64(stop()) / (1 << 20)
	p99, p50 := percentile(all, 0.99), percentile(all, 0.5)
	return []row{{"add beside an open page, 10,000 conversations: p99", fmt.Sprintf("%s (p50 %s, alone %s; read %d times)", p99.Round(100*time.Microsecond), p50.Round(100*time.Microsecond), alone.Round(100*time.Microsecond), reads),
		"under 100 ms", p99 < 100*time.Millisecond && reads > 0},
		{"memory of the server of that page, at most", fmt.Sprintf("%.0f MB", memory), "under 150 MB", memory < 150}}
}
