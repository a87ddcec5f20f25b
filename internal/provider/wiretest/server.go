package wiretest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chatctx/chatctx/adapter/wire"
)

// Exchange is an expected request of a client, and its answer.
type Exchange struct {
	Method, URI string            // URI with the query
	Header      map[string]string // required headers
	Body        string            // exactly; "" for none
	Type        string            // the answer's Content-Type
	Answer      string
}

// Serve starts a server that expects these exchanges in order, and no others, and returns its address.
func Serve(t *testing.T, exchanges ...Exchange) string {
	t.Helper()
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if n >= len(exchanges) {
			t.Errorf("one request too many: %s %s", r.Method, r.RequestURI)
			http.Error(w, "{}", http.StatusTeapot)
			return
		}
		want := exchanges[n]
		n++
		if r.Method != want.Method || r.RequestURI != want.URI || string(body) != want.Body {
			t.Errorf("%s %s with %s\nwant %s %s with %s", r.Method, r.RequestURI, body, want.Method, want.URI, want.Body)
		}
		for name, value := range want.Header {
			if got := r.Header.Get(name); got != value {
				t.Errorf("%s %s: %s is %q, not %q", r.Method, r.RequestURI, name, got, value)
			}
		}
		w.Header().Set("Content-Type", want.Type)
		io.WriteString(w, want.Answer)
	}))
	t.Cleanup(func() {
		server.Close()
		if n != len(exchanges) {
			t.Errorf("%d requests, not %d", n, len(exchanges))
		}
	})
	return server.URL
}

// Env returns an environment with only these variables.
func Env(pairs ...string) func(string) string {
	env := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		env[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return env[name] }
}

// Says sends a request and checks the text of the reply.
func Says(t *testing.T, c wire.Client, r wire.Request, want string) {
	t.Helper()
	stream, err := c.Send(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.Read(nil)
	if err != nil || m.Unfinished || m.Text() != want {
		t.Errorf("%+v, %v", m, err)
	}
}
