package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

// counting is a client that only counts.
type counting struct {
	wire.Client
	factor float64
	asked  int
	real   int // tokens of the request by our count
}

func (c *counting) Count(context.Context, wire.Request) (int64, error) {
	c.asked++
	if c.factor == 0 {
		return 0, wire.ErrNoCount
	}
	return int64(float64(c.real) * c.factor), nil
}

// talked fills the branch with n turns.
func talked(t *testing.T, turn *Turn, n int) {
	t.Helper()
	for i := range n {
		text := strings.Repeat(fmt.Sprintf("word %d of the talk, ", i), 20)
		if _, err := turn.Context.Append(t.Context(), "", user(text), pool.NewText(pool.Assistant, text)); err != nil {
			t.Fatal(err)
		}
	}
}

func set(t *testing.T, turn *Turn, settings string) {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(settings), &m); err != nil {
		t.Fatal(err)
	}
	b := turn.Context.Begin("")
	b.SetSettings(m)
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestTheProviderIsAskedCloseToTheLimit(t *testing.T) {
	turn := newTurn(t, newProvider(t))
	talked(t, turn, 20)
	if _, err := turn.Context.Append(t.Context(), "", user("and now?")); err != nil {
		t.Fatal(err)
	}
	whole, err := turn.Request(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	size := whole.Report.After
	for _, c := range []struct {
		budget  int
		factor  float64
		asked   int
		smaller bool
	}{
		{size * 2, 2, 0, false},        // far from the limit
		{size * 100 / 95, 1, 1, false}, // the provider says that it fits
		{size * 100 / 95, 2, 1, true},
		{size * 100 / 95, 0, 1, false}, // the provider cannot say
	} {
		set(t, turn, `{"headroom":0,"budget":`+strconv.Itoa(c.budget)+`}`)
		client := &counting{factor: c.factor, real: size}
		turn.Client = client
		req, err := turn.request(t.Context(), "main", nil)
		if err != nil {
			t.Fatal(err)
		}
		if client.asked != c.asked || (req.Report.After < size) != c.smaller {
			t.Errorf("%+v: asked %d times, the request has %d of %d tokens", c, client.asked, req.Report.After, size)
		}
		if c.smaller && float64(req.Report.After)*c.factor > float64(c.budget) {
			t.Errorf("%d tokens by the provider's count, the budget is %d", int(float64(req.Report.After)*c.factor), c.budget)
		}
	}
	turn.Client = &counting{factor: 1, real: 42}
	if n, err := turn.Count(t.Context()); err != nil || n != 42 {
		t.Errorf("count: %d %v", n, err)
	}
}

func TestCompactWhereItIsDue(t *testing.T) {
	p := newProvider(t, says("They counted words."), says("Go on."))
	turn := newTurn(t, p)
	talked(t, turn, 20)
	set(t, turn, `{"budget":100000}`)
	if done, err := turn.Compact(t.Context()); done != nil || err != nil {
		t.Fatalf("it was not due: %+v %v", done, err)
	}
	set(t, turn, `{"budget":3000,"compact.keep":500}`)
	done, err := turn.Compact(t.Context())
	if err != nil || done == nil || done.Summary != "They counted words." || done.By != "model" {
		t.Fatalf("%+v %v", done, err)
	}
	if !strings.Contains(p.bodies[0], "word 0 of the talk") || strings.Contains(p.bodies[0], "word 19 of the talk") {
		t.Errorf("the model was asked about %.300s", p.bodies[0])
	}
	if again, err := turn.Compact(t.Context()); again != nil || err != nil {
		t.Errorf("a second time: %+v %v", again, err)
	}
	_, err = turn.Send(t.Context(), user("next"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(p.bodies[1], "They counted words.") || strings.Contains(p.bodies[1], "word 0 of the talk") {
		t.Errorf("the request is %.300s", p.bodies[1])
	}
	if info, _ := turn.Context.Branch(t.Context(), ""); len(info.Sessions) != 2 || info.Messages != 42 {
		t.Errorf("%d sessions, %d messages", len(info.Sessions), info.Messages)
	}
}

// TestCompactWithNothingToLeaveOut: a compaction that is due while the session holds no more than is kept does nothing, and is no failure.
func TestCompactWithNothingToLeaveOut(t *testing.T) {
	turn := newTurn(t, newProvider(t))
	if _, err := turn.Context.Append(t.Context(), "", user(strings.Repeat("many words ", 5000))); err != nil {
		t.Fatal(err)
	}
	set(t, turn, `{"budget":3000}`)
	if done, err := turn.Compact(t.Context()); done != nil || err != nil {
		t.Errorf("%+v %v", done, err)
	}
}

// TestCompactionDuringAReply: a compaction during a reply stays, even if the request had moved marks.
func TestCompactionDuringAReply(t *testing.T) {
	var turn *Turn
	p := newProvider(t, func(w *writer, r *http.Request) {
		o := window.DefaultOptions()
		o.CompactKeep = 300
		if _, err := window.Compact(context.Background(), turn.Context, "", o, window.Request{Text: "so far"}); err != nil {
			t.Error(err)
		}
		says("Done.")(w, r)
	})
	turn = newTurn(t, p)
	talked(t, turn, 20)
	set(t, turn, `{"budget":2000}`)
	if _, err := turn.Send(t.Context(), user("next")); err != nil {
		t.Fatal(err)
	}
	d, err := turn.Context.Draft(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if d.Summary == nil || window.SummaryText(d.Summary.Message) != "so far" || d.Messages[len(d.Messages)-1].Text() != "Done." {
		t.Errorf("the session is %+v", d.Session)
	}
}

func TestEmbedder(t *testing.T) {
	turn := newTurn(t, newProvider(t))
	if e, err := embedderOf(t.Context(), turn); e != nil || err != nil {
		t.Fatalf("without a model: %v %v", e, err)
	}
	answer := `{"data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[1,0.5]}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer secret" || string(body) != `{"model":"small","input":["a","b"],"encoding_format":"float"}` {
			t.Errorf("%s %s %v", r.URL.Path, body, r.Header)
		}
		io.WriteString(w, answer)
	}))
	defer server.Close()
	set(t, turn, `{"embedding.model":"small","embedding.key_env":"OWN_KEY","embedding.base_url":"`+server.URL+`"}`)
	turn.Getenv = func(name string) string { return map[string]string{"OWN_KEY": "secret"}[name] }
	e, err := embedderOf(t.Context(), turn)
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.Embed(t.Context(), []string{"a", "b"})
	if err != nil || fmt.Sprint(got) != "[[1 0.5] [0 1]]" || e.Name() != "small" {
		t.Errorf("%v %v", got, err)
	}
	answer = `{"data":[{"index":0,"embedding":[1]}]}`
	if _, err := e.Embed(t.Context(), []string{"a", "b"}); err == nil {
		t.Error("a vector that is missing was not missed")
	}
}

// TestToolForWhatWasPutAside: the model is offered the tool that reads artifacts back if its calls are answered.
func TestToolForWhatWasPutAside(t *testing.T) {
	turn := newTurn(t, newProvider(t))
	talked(t, turn, 4)
	call := &chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "c", Tool: "run", Arguments: json.RawMessage(`{}`)}}}
	result := &chatctx.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "c", Text: strings.Repeat("a line of output that is long\n", 1000)}}
	if _, err := turn.Context.Append(t.Context(), "", user("run it"), call, result, pool.NewText(pool.Assistant, "done"), user("and?")); err != nil {
		t.Fatal(err)
	}
	set(t, turn, `{"budget":3000,"prune.threshold":1000000}`)
	for _, answered := range []bool{false, true} {
		turn.Calls = nil
		if answered {
			turn.Calls = func(context.Context, string, *chatctx.Message, []string) (bool, error) { return true, nil }
		}
		req, err := turn.Request(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(req.Body), "[EXTERNALIZED: ") || strings.Contains(string(req.Body), `"read_artifact"`) != answered {
			t.Errorf("answered %v: %.300s", answered, req.Body)
		}
	}
}

// optionsOf returns the settings of a turn's window.
func optionsOf(ctx context.Context, t *Turn) (o window.Options, err error) {
	inForce, err := t.InForce(ctx)
	if err != nil {
		return o, err
	}
	return window.AskingOf(inForce).Options(ctx)
}

func embedderOf(ctx context.Context, t *Turn) (window.Embedder, error) {
	inForce, err := t.InForce(ctx)
	if err != nil {
		return nil, err
	}
	return window.AskingOf(inForce).Embedder()
}
