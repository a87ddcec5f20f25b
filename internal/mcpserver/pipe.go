package mcpserver

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// answering is a transport whose input does not end before the requests on it are answered, so that they can come from a file or a pipe. One that was called off
// may stay without an answer: the end waits answerGrace at most.
type answering struct{ mcp.Transport }

const answerGrace = 10 * time.Second

func (a answering) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := a.Transport.Connect(ctx)
	return &answeringConnection{Connection: c, open: map[jsonrpc.ID]bool{}, answered: make(chan struct{}, 1)}, err
}

type answeringConnection struct {
	mcp.Connection
	mu       sync.Mutex
	open     map[jsonrpc.ID]bool // the requests that are not answered
	answered chan struct{}       // has a value after an answer
}

func (c *answeringConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if err != nil {
		c.wait(ctx)
	} else if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		c.mu.Lock()
		c.open[r.ID] = true
		c.mu.Unlock()
	}
	return m, err
}

// wait waits until all requests are answered.
func (c *answeringConnection) wait(ctx context.Context) {
	end := time.After(answerGrace)
	for {
		c.mu.Lock()
		left := len(c.open)
		c.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-c.answered:
		case <-ctx.Done():
			return
		case <-end:
			return
		}
	}
}

func (c *answeringConnection) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if r, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.open, r.ID)
		c.mu.Unlock()
		select {
		case c.answered <- struct{}{}:
		default:
		}
	}
	return err
}
