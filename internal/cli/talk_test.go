package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestTalkScripts runs testdata/talk: command lines that ask a provider, which is a server in the test that speaks the five protocols.
func TestTalkScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/talk",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("USERPROFILE", filepath.Join(e.WorkDir, "home")) // on Windows
			e.Setenv("XDG_DATA_HOME", filepath.Join(e.WorkDir, "data"))
			e.Setenv("TZ", "UTC")
			e.Setenv("TERM", "xterm")
			e.Setenv("COLUMNS", "80")
			e.Setenv("GORACE", "atexit_sleep_ms=0") // else each program sleeps for a second at its end
			s := &fakeProvider{}
			server := httptest.NewServer(s)
			e.Defer(server.Close)
			e.Values["provider"] = s
			for _, variable := range providerEnv(server.URL) {
				name, value, _ := strings.Cut(variable, "=")
				e.Setenv(name, value)
			}
			e.Setenv("SERVER", server.URL)
			return nil
		},
		Cmds: talkCommandsOfTests,
	})
}

// providerEnv leads every provider's requests to a server, with keys.
func providerEnv(url string) []string {
	return []string{
		"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=sk-ant-secret", "OPENAI_BASE_URL=" + url + "/v1", "OPENAI_API_KEY=sk-secret",
		"GOOGLE_GEMINI_BASE_URL=" + url, "GEMINI_API_KEY=AIzaSecret", "OLLAMA_HOST=" + url,
	}
}

// talkCommandsOfTests are what the scripts may use beside testscript's own commands.
var talkCommandsOfTests = map[string]func(*testscript.TestScript, bool, []string){
	"exits": scriptExits, "make": scriptMake, "setlast": scriptSetLast, "answers": scriptAnswers, "asked": scriptAsked, "shown": scriptShown, "released": scriptReleased,
	"picture": scriptPicture, "sent-key": scriptSentKey,
}

// scriptPicture: picture FILE WIDTH HEIGHT.
func scriptPicture(ts *testscript.TestScript, _ bool, args []string) {
	w, err := strconv.Atoi(args[1])
	ts.Check(err)
	h, err := strconv.Atoi(args[2])
	ts.Check(err)
	var b bytes.Buffer
	ts.Check(png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o644))
}

// fakeProvider answers requests in order. An answer is a line: say TEXT; call TOOL JSON; half TEXT (and the connection ends); compact TEXT (behind a
// compaction of all that was asked); hang TEXT (until the client has gone; hang alone says nothing); fail TEXT (an error after it); status CODE BODY; body TEXT
// (as it is); torn TEXT (and the connection breaks); compacted ITEMS (what a provider makes of a history that it is to compact apart from a request).
type fakeProvider struct {
	mu      sync.Mutex
	answers []string
	always  string // where answers are used up; "" refuses
	bodies  []string
	keys    []string      // that came with each of them
	shown   int           // how often somebody asked what a model takes
	hanging chan struct{} // closed when a hanging answer has said its words
}

// scriptAnswers: answers FILE sets what comes next, a line each answer.
func scriptAnswers(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value("provider").(*fakeProvider)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n")
	s.bodies, s.keys, s.hanging = nil, nil, make(chan struct{})
}

// scriptSentKey: sent-key N KEY: the Nth request since answers came with that key, "" for none.
func scriptSentKey(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value("provider").(*fakeProvider)
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	if n > len(s.keys) || s.keys[n-1] != args[1] {
		ts.Fatalf("the keys that came: %q", s.keys)
	}
}

// scriptAsked: asked N FILE writes the body of the Nth request since answers into a file; asked N alone: there were that many.
func scriptAsked(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value("provider").(*fakeProvider)
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	if len(args) == 1 {
		if len(s.bodies) != n {
			ts.Fatalf("asked %d times", len(s.bodies))
		}
		return
	}
	if n > len(s.bodies) {
		ts.Fatalf("asked only %d times", len(s.bodies))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(s.bodies[n-1]), 0o644))
}

// scriptShown: shown N: so often somebody asked what a model takes.
func scriptShown(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value("provider").(*fakeProvider)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, err := strconv.Atoi(args[0]); err != nil || n != s.shown {
		ts.Fatalf("%d times", s.shown)
	}
}

// scriptReleased waits until a hanging answer has said its words.
func scriptReleased(ts *testscript.TestScript, _ bool, _ []string) {
	<-ts.Value("provider").(*fakeProvider).hanging
}

func (s *fakeProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.Method == http.MethodGet {
		s.models(w, r)
		return
	}
	if r.URL.Path == "/api/show" {
		s.mu.Lock()
		s.shown++
		s.mu.Unlock()
		io.WriteString(w, `{"parameters":"num_ctx 4000","model_info":{"llama.context_length":131072}}`)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/count_tokens") {
		io.WriteString(w, `{"input_tokens":7}`)
		return
	}
	s.mu.Lock()
	if strings.HasSuffix(r.URL.Path, "/compact") {
		body = append([]byte("compact "), body...)
	}
	s.bodies = append(s.bodies, string(body))
	s.keys = append(s.keys, r.Header.Get("Authorization")+r.Header.Get("X-Api-Key")+r.Header.Get("X-Goog-Api-Key"))
	answer := `status 400 {"error":{"type":"invalid_request_error","message":"no more answers"}}`
	if s.always != "" {
		answer = s.always
	}
	if len(s.answers) > 0 {
		answer, s.answers = s.answers[0], s.answers[1:]
	}
	hanging := s.hanging
	s.mu.Unlock()
	do, text, _ := strings.Cut(answer, " ")
	if do == "status" {
		code, body, _ := strings.Cut(text, " ")
		status, _ := strconv.Atoi(code)
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "90")
		}
		http.Error(w, body, status)
		return
	}
	p := protocolOf(r.URL.Path)
	tool, arguments, _ := strings.Cut(text, " ")
	switch do {
	case "stop": // REASON TEXT
		io.WriteString(w, p.begin+p.words(arguments)+p.ends(tool))
	case "say":
		io.WriteString(w, p.begin+p.words(text)+p.end)
	case "call":
		io.WriteString(w, p.begin+p.call(tool, arguments))
	case "compact":
		io.WriteString(w, p.begin+p.compaction+p.words(text)+p.end)
	case "half":
		io.WriteString(w, p.begin+p.words(text))
	case "fail":
		io.WriteString(w, p.begin+p.words(text)+p.fail)
	case "body", "torn", "compacted":
		wholeAnswer(w, do, text)
	case "hang":
		if text != "" {
			io.WriteString(w, p.begin+p.words(text))
		}
		w.(http.Flusher).Flush()
		s.mu.Lock()
		select {
		case <-hanging: // another one has said its words already
		default:
			close(hanging)
		}
		s.mu.Unlock()
		<-r.Context().Done()
	}
}

// wholeAnswer writes an answer that is no stream.
func wholeAnswer(w http.ResponseWriter, do, text string) {
	w.Header().Set("Content-Type", "application/json")
	if do == "compacted" {
		text = `{"id":"resp_1","object":"response.compaction","created_at":1,"output":` + text + `,"usage":{"input_tokens":7000,"output_tokens":300,"total_tokens":7300}}`
	}
	io.WriteString(w, text)
	if do == "torn" {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func (s *fakeProvider) models(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/api/tags":
		io.WriteString(w, `{"models":[{"name":"llama-test:1b","modified_at":"2026-01-02T03:04:05Z"}]}`)
	case r.URL.Path == "/v1beta/models":
		io.WriteString(w, `{"models":[{"name":"models/gemini-test","inputTokenLimit":1000,"supportedGenerationMethods":["generateContent"]},{"name":"models/embed","supportedGenerationMethods":["embedContent"]}]}`)
	case r.Header.Get("X-Api-Key") != "":
		io.WriteString(w, `{"data":[{"id":"claude-test","display_name":"Claude Test","created_at":"2026-01-02T03:04:05Z"}],"has_more":false}`)
	default:
		io.WriteString(w, `{"object":"list","data":[{"id":"gpt-test","created":1764200000,"owned_by":"o"}]}`)
	}
}

// protocol is what a provider writes.
type protocol struct {
	begin, end, fail string
	compaction       string
	words            func(string) string
	call             func(tool, arguments string) string
}

// ends returns the end with another reason.
func (p protocol) ends(reason string) string {
	return strings.NewReplacer("end_turn", reason, `"finish_reason":"stop"`, `"finish_reason":"`+reason+`"`, `"finishReason":"STOP"`, `"finishReason":"`+reason+`"`,
		`"done_reason":"stop"`, `"done_reason":"`+reason+`"`, `"response.completed"`, `"response.incomplete"`,
		`"status":"completed"`, `"status":"incomplete","incomplete_details":{"reason":"`+reason+`"}`).Replace(p.end)
}

func protocolOf(path string) protocol {
	q := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	data := func(format string, args ...any) string { return "data: " + fmt.Sprintf(format, args...) + "\n\n" }
	switch {
	case path == "/v1/messages":
		stop := func(reason string) string {
			return data(`{"type":"content_block_stop","index":0}`) + data(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":3}}`, reason) + data(`{"type":"message_stop"}`)
		}
		return protocol{
			begin: data(`{"type":"message_start","message":{"model":"claude-sonnet-4-5","usage":{"input_tokens":7}}}`),
			compaction: data(`{"type":"content_block_start","index":5,"content_block":{"type":"compaction","content":null}}`) +
				data(`{"type":"content_block_delta","index":5,"delta":{"type":"compaction_delta","content":"ALL-OF-IT"}}`) + data(`{"type":"content_block_stop","index":5}`),
			words: func(s string) string {
				return data(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) + data(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}`, q(s))
			},
			call: func(tool, arguments string) string {
				return data(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":%q,"input":{}}}`, tool) +
					data(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":%s}}`, q(arguments)) + stop("tool_use")
			},
			end:  stop("end_turn"),
			fail: data(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
		}
	case path == "/v1/chat/completions":
		return protocol{
			words: func(s string) string {
				return data(`{"id":"c1","model":"gpt-test","choices":[{"index":0,"delta":{"role":"assistant","content":%s}}]}`, q(s))
			},
			end: data(`{"id":"c1","model":"gpt-test","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`) +
				data(`{"id":"c1","model":"gpt-test","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}`) + data("[DONE]"),
		}
	case path == "/v1/responses":
		return protocol{
			begin: data(`{"type":"response.created","response":{"id":"r1","model":"gpt-test","status":"in_progress"}}`) +
				data(`{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","content":[]}}`),
			compaction: data(`{"type":"response.output_item.done","output_index":1,"item":{"id":"cmp_1","type":"compaction","encrypted_content":"OPAQUE"}}`),
			words: func(s string) string {
				return data(`{"type":"response.output_text.delta","output_index":0,"delta":%s}`, q(s)) +
					data(`{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":%s,"annotations":[]}]}}`, q(s))
			},
			end: data(`{"type":"response.completed","response":{"id":"r1","model":"gpt-test","status":"completed","output":[],"usage":{"input_tokens":7,"output_tokens":3}}}`),
		}
	case path == "/api/chat":
		return protocol{
			words: func(s string) string {
				return fmt.Sprintf(`{"model":"llama-test","message":{"role":"assistant","content":%s},"done":false}`+"\n", q(s))
			},
			end: `{"model":"llama-test","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":7,"eval_count":3}` + "\n",
		}
	}
	return protocol{
		words: func(s string) string {
			return data(`{"candidates":[{"content":{"parts":[{"text":%s}],"role":"model"}}],"modelVersion":"gemini-test"}`, q(s))
		},
		end: data(`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3}}`),
	}
}
