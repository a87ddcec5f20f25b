// Package input reads what may keep a reader waiting: pipes, terminals, standard input. Each wait ends with its context.
package input

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
)

// Reader is a reader whose Read ends when its context does, even while it waits for input. What arrives after that is lost.
type Reader struct {
	From io.Reader
	ctx  context.Context
	mu   sync.Mutex
}

// New returns a Reader of what from has.
func New(ctx context.Context, from io.Reader) *Reader { return &Reader{From: from, ctx: ctx} }

func (r *Reader) Read(p []byte) (int, error) {
	own := make([]byte, len(p)) // an abandoned read must not write to the caller's memory
	n, err := Await(r.ctx, func() (int, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.From.Read(own)
	})
	copy(p, own[:n])
	return n, err
}

// Await returns what f returns, or context.Canceled as soon as ctx ends; f then goes on by itself.
func Await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		return none, context.Canceled
	}
}

// Open opens a file, or a pipe or a character device, which can be read once. It waits for the other end of a pipe until ctx ends, and so does each read. Folders, sockets and
// disks are errors that say so.
func Open(ctx context.Context, path string) (io.ReadCloser, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() {
		return os.Open(path)
	}
	if !Waits(info.Mode()) {
		return nil, fmt.Errorf("%s is %s, which cannot be read as a file", path, kindOf(info.Mode()))
	}
	f, err := Await(ctx, func() (*os.File, error) {
		f, err := os.Open(path)
		if err == nil && ctx.Err() != nil { // nobody waits for it any more
			f.Close()
			return nil, ctx.Err()
		}
		return f, err
	})
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{New(ctx, f), f}, nil
}

// Waits tells whether a file of that mode is read like standard input: a pipe or a character device.
func Waits(mode fs.FileMode) bool { return mode&(fs.ModeNamedPipe|fs.ModeCharDevice) != 0 }

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a disk"
	}
	return "something of the system's"
}
