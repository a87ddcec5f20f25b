// Package wiretest is the test suite for every provider's fold: it gives the same message however the stream is cut into reads, and keeps what arrived of a
// stream that breaks off anywhere.
package wiretest

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/pool"
)

var update = flag.Bool("update", false, "write what came out over the golden files")

// Provider has what the suite needs of one.
type Provider struct {
	Fold   func() wire.Fold
	Frames func(io.Reader) wire.Frames
	Ext    string // of recorded streams: .sse or .ndjson
}

// Run reads every stream in testdata (NAME.sse), compares its message with NAME.golden, and then cuts it at every byte. NAME.json, if it exists, is the same
// reply in one piece and must give the same message.
func Run(t *testing.T, p Provider) {
	files, err := filepath.Glob(filepath.Join("testdata", "*"+p.Ext))
	if err != nil || len(files) == 0 {
		t.Fatalf("no streams in testdata: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, p.Ext)
		t.Run(filepath.Base(name), func(t *testing.T) {
			stream, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := p.decode(strings.NewReader(string(stream)))
			golden(t, name+".golden", want)
			p.Split(t, stream, want)
			p.Cut(t, stream)
			p.Mangle(t, stream)
			if whole, err := os.ReadFile(name + ".json"); err == nil {
				m, err := p.readWhole(string(whole))
				if got := Dump(m, err); got != want {
					t.Errorf("in one piece:\n%s\nas a stream:\n%s", got, want)
				}
			}
		})
	}
}

// NoReply checks that an answer in one piece that is not a reply is an error, not an empty message.
func (p Provider) NoReply(t *testing.T) {
	for _, body := range []string{`{}`, `{"error":{"type":"overloaded_error","code":"server_error","status":"UNAVAILABLE","message":"busy"},"type":"error"}`, `{"detail":"busy"}`} {
		m, err := p.readWhole(body)
		var e *wire.Error
		if m != nil || !errors.As(err, &e) || e.Kind != wire.Overloaded {
			t.Errorf("%s: %v, %v", body, m, err)
		}
	}
}

// readWhole returns the message of a reply in one piece.
func (p Provider) readWhole(body string) (*pool.Message, error) {
	return wire.NewStream("test", io.NopCloser(strings.NewReader(body)), nil, p.Fold()).Read(nil)
}

func (p Provider) decode(r io.Reader) string { return Dump(p.Read(r)) }

// Read returns the message of a stream.
func (p Provider) Read(r io.Reader) (*pool.Message, error) {
	return wire.NewStream("test", io.NopCloser(r), p.Frames(r), p.Fold()).Read(nil)
}

// Split checks that a stream gives want when it is cut into two reads at any byte, and when it is read byte by byte.
func (p Provider) Split(t *testing.T, stream []byte, want string) {
	t.Helper()
	if got := p.decode(iotest.OneByteReader(strings.NewReader(string(stream)))); got != want {
		t.Errorf("byte by byte:\n%s\nwant:\n%s", got, want)
	}
	for i := range stream {
		r := io.MultiReader(strings.NewReader(string(stream[:i])), strings.NewReader(string(stream[i:])))
		if got := p.decode(r); got != want {
			t.Fatalf("split at byte %d:\n%s\nwant:\n%s", i, got, want)
		}
	}
}

// Cut checks the result of a stream that ends at any byte: no error and a finished message, or ErrIncomplete (or the stream's own error) and an unfinished one
// without incomplete calls.
func (p Provider) Cut(t *testing.T, stream []byte) {
	t.Helper()
	for i := range stream {
		m, err := p.Read(strings.NewReader(string(stream[:i])))
		var e *wire.Error
		switch {
		case err == nil && (m == nil || m.Unfinished):
			t.Fatalf("cut at byte %d: no error, and no finished message", i)
		case err != nil && (!errors.As(err, &e) || m != nil && !m.Unfinished):
			t.Fatalf("cut at byte %d: %v with a finished message", i, err)
		case e != nil && (e.Kind == wire.Incomplete) != errors.Is(err, wire.ErrIncomplete):
			t.Fatalf("cut at byte %d: %v is not ErrIncomplete", i, err)
		}
		if m == nil {
			continue
		}
		for _, c := range m.Calls {
			if c.Arguments != nil && !json.Valid(c.Arguments) || c.Tool == "" || c.Status != pool.Pending {
				t.Fatalf("cut at byte %d: a half-made call %+v", i, c)
			}
		}
	}
}

// Fuzz reads any bytes as a stream: they must give a message that can be stored, or an error, and never a panic.
func (p Provider) Fuzz(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*"+p.Ext))
	if err != nil || len(files) == 0 {
		f.Fatalf("no streams in testdata: %v", err)
	}
	for _, file := range files {
		stream, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(stream)
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		m, err := p.Read(strings.NewReader(string(stream)))
		if m == nil && err == nil {
			t.Fatal("neither a message nor an error")
		}
		if m != nil {
			if err := m.Validate(); err != nil {
				t.Fatalf("%v: %+v", err, m)
			}
		}
	})
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n%s\nwant:\n%s", file, got, want)
	}
}

// Dump returns a message as text, with one line for each thing in it.
func Dump(m *pool.Message, err error) string {
	var b strings.Builder
	if err != nil {
		var e *wire.Error
		if errors.As(err, &e) {
			fmt.Fprintf(&b, "error %s %q: %s\n", e.Kind, e.Type, e.Message)
		} else {
			fmt.Fprintf(&b, "error %v\n", err)
		}
	}
	if m == nil {
		return b.String() + "no message\n"
	}
	fmt.Fprintf(&b, "%s of %s at %s unfinished=%t finish=%q\n", m.Role, m.Meta.Model, m.Meta.Provider, m.Unfinished, m.Meta.FinishReason)
	for _, p := range m.Content {
		fmt.Fprintf(&b, "part %s %q", p.Type, p.Text)
		for _, v := range [][2]string{{"signature", p.Signature}, {"redacted", p.Redacted}, {"by", p.Provider}, {"model", p.Model},
			{"call", p.CallID}, {"media", p.MediaType}, {"data", string(p.Data)}, {"raw", string(p.Raw)}} {
			if v[1] != "" {
				fmt.Fprintf(&b, " %s=%s", v[0], v[1])
			}
		}
		b.WriteString("\n")
	}
	for _, c := range m.Calls {
		fmt.Fprintf(&b, "call %s %s %s %s %s", c.ID, c.Tool, c.Arguments, c.Status, c.Execution)
		if c.Raw != nil {
			fmt.Fprintf(&b, " raw=%s", c.Raw)
		}
		b.WriteString("\n")
	}
	for _, n := range []struct {
		name  string
		count *int64
	}{{"input", m.Meta.InputTokens}, {"output", m.Meta.OutputTokens}, {"cache read", m.Meta.CacheRead}, {"cache write", m.Meta.CacheWrite},
		{"reasoning", m.Meta.ReasoningTokens}} {
		if n.count != nil {
			fmt.Fprintf(&b, "%s tokens %d\n", n.name, *n.count)
		}
	}
	if m.Meta.Usage != nil {
		fmt.Fprintf(&b, "usage %s\n", m.Meta.Usage)
	}
	for name, data := range m.Meta.ProviderData {
		fmt.Fprintf(&b, "data of %s %s\n", name, data)
	}
	if m.Meta.Error != "" && err == nil {
		fmt.Fprintf(&b, "note %s\n", m.Meta.Error)
	}
	return b.String()
}
