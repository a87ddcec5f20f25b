// Package acmetest has a server that talks as Acme does, for tests.
package acmetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	_ "example.org/outside/acme"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
)

// Server answers each request by the next of its answers: events, one a line. An answer that begins with "whole " comes in one piece, one that begins with a number
// is an error of HTTP with that status.
type Server struct {
	URL     string
	mu      sync.Mutex
	bodies  []string
	answers []string
}

// New starts a server that ends with the test.
func New(t *testing.T, answers ...string) *Server {
	s := &Server{answers: answers}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	s.URL = h.URL
	return s
}

// Bodies returns the requests so far.
func (s *Server) Bodies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.bodies)
	s.bodies = append(s.bodies, string(body))
	if err := Judge("", body); err != nil || r.URL.Path != "/talk" || r.Header.Get("Authorization") != "Bearer secret" || n >= len(s.answers) {
		http.Error(w, fmt.Sprintf("%s with %q, request %d: %v", r.URL.Path, r.Header.Get("Authorization"), n+1, err), http.StatusBadRequest)
		return
	}
	answer := s.answers[n]
	if whole, is := strings.CutPrefix(answer, "whole "); is {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, whole)
		return
	}
	var status int
	if _, err := fmt.Sscan(answer, &status); err == nil {
		http.Error(w, answer, status)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for line := range strings.Lines(answer) {
		fmt.Fprintf(w, "data: %s\n\n", strings.TrimSpace(line))
	}
}

// Settings are those with which a conversation asks the server.
func Settings() map[string]json.RawMessage {
	return map[string]json.RawMessage{"provider": json.RawMessage(`"acme"`), "model": json.RawMessage(`"acme-1"`), "retries": json.RawMessage("0")}
}

// Getenv is the environment in which the server is Acme's.
func (s *Server) Getenv(name string) string {
	return map[string]string{"ACME_URL": s.URL, "ACME_API_KEY": "secret"}[name]
}

// Talk makes a conversation in memory with Acme's settings.
func Talk(t *testing.T, o chatctx.Options) *chatctx.ChatContext {
	t.Helper()
	store, err := chatctx.OpenMemory(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := store.New(t.Context(), record.NewContext{Title: "Harbour", Settings: Settings()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Judge returns what Acme would refuse in a body.
func Judge(_ string, body []byte) error {
	var b struct {
		Model       string   `json:"model"`
		Temperature *float64 `json:"temperature"`
		Most        int64    `json:"most"`
		Stream      *bool    `json:"stream"`
		Tools       []struct {
			Type     string `json:"type"`
			Function struct {
				Name, Description string
				Parameters        map[string]any
			} `json:"function"`
		} `json:"tools"`
		Lines []struct {
			From, Text, Call string
			Calls            []struct {
				ID, Tool string
				With     map[string]any
			}
		} `json:"lines"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		return err
	}
	var wrong []error
	must := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	must(b.Model != "", "no model")
	must(len(b.Lines) > 0, "no lines")
	for _, t := range b.Tools {
		must(plain(t.Function.Name) && t.Function.Parameters["type"] == "object", "the tool %+v", t)
	}
	var waiting []string // calls that the next lines answer, in order
	seen := map[string]bool{}
	for i, l := range b.Lines {
		must(strings.TrimSpace(l.Text) != "" || len(l.Calls) > 0, "line %d says nothing", i)
		if l.From == "tool" {
			must(len(waiting) > 0 && waiting[0] == l.Call, "line %d answers %q, and %q wait", i, l.Call, waiting)
			waiting = waiting[min(1, len(waiting)):]
			continue
		}
		must(len(waiting) == 0, "line %d stands before the answers of %q", i, waiting)
		must(l.From == "system" || l.From == "user" || l.From == "assistant", "line %d is from %q", i, l.From)
		must(l.From == "assistant" || len(l.Calls) == 0, "line %d has calls of %s", i, l.From)
		must(l.From != "assistant" || len(l.Calls) > 0 || i < len(b.Lines)-1, "the assistant has the last word")
		for _, c := range l.Calls {
			must(plain(c.ID) && !seen[c.ID] && plain(c.Tool) && c.With != nil, "line %d has the call %+v", i, c)
			waiting, seen[c.ID] = append(waiting, c.ID), true
		}
	}
	must(len(waiting) == 0, "nothing answers %q", waiting)
	return errors.Join(wrong...)
}

// plain reports whether Acme takes a name or an id.
func plain(s string) bool {
	return s != "" && len(s) <= 40 && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}
