package pool_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// -update writes the golden files anew. Those of a format version that was released must never change.
var updateGolden = flag.Bool("update", false, "write the golden files and fuzz seeds")

func ptr[T any](v T) *T { return &v }

func fixedID(n byte) pool.ID { return pool.ID{0x01, 0x97, 0, 0, 0, 0, 0x70, 0, 0x80, 15: n} }

// goldenMessages use every field at least once.
func goldenMessages() map[string]*pool.Message {
	unknown := map[uint64]cbor.RawMessage{1000: {0x82, 0x01, 0x63, 'n', 'e', 'w'}, 77: {0xf5}}
	return map[string]*pool.Message{
		"user": {ID: fixedID(1), Role: pool.User, Created: 1_700_000_000_000_000, Content: []pool.Part{
			{Type: pool.TextPart, Text: " What is <this>? \n"},
			{Type: pool.ImagePart, MediaType: "image/png", Name: "a.png", SHA256: pool.HashOf([]byte("a")), Size: 1},
			{Type: pool.DocumentPart, MediaType: "application/pdf", URL: "https://example.org/a.pdf"}}},
		"assistant": {ID: fixedID(2), Role: pool.Assistant, Created: 1_700_000_000_123_400, Unfinished: true, CopiedFrom: ptr(fixedID(9)),
			Content: []pool.Part{
				{Type: pool.ThinkingPart, Text: "hm", Signature: "c2ln", Provider: "anthropic", Model: "m-1"},
				{Type: pool.ThinkingPart, Redacted: "b3BhcXVl", Provider: "anthropic"},
				{Type: pool.TextPart, Text: "I look.", Raw: json.RawMessage(`{"type":"output_text","id":"msg_1"}`)},
				{Type: pool.CallPart, CallID: "call_1"}},
			Calls: []pool.Call{
				{ID: "call_1", Tool: "search", Arguments: json.RawMessage(`{"q": "a < b", "n": 1.0}`), Status: pool.Denied,
					Execution: pool.NotRun, Reason: "not now", Raw: json.RawMessage(`{"thought_signature":"x"}`), Provider: "gemini", Model: "m-2"},
				{ID: "call_2", Tool: "now"}},
			Meta: pool.Metadata{Model: "m-1", Provider: "anthropic", InputTokens: ptr(int64(100)), OutputTokens: ptr(int64(20)),
				CacheRead: ptr(int64(0)), CacheWrite: ptr(int64(5)), ReasoningTokens: ptr(int64(7)), Usage: json.RawMessage(`{"input":100}`),
				FinishReason: "tool_use", Error: "cut off", Completed: 1_700_000_001_000_000,
				ProviderData: map[string]json.RawMessage{"anthropic": json.RawMessage(`{"id":"msg_1"}`)}}},
		"result-text": {ID: fixedID(3), Role: pool.ToolRole, Result: &pool.Result{RequestID: "call_1", Text: "found", IsError: true,
			CompactSummary: "f.", Tool: "search"}},
		"result-json": {ID: fixedID(4), Role: pool.ToolRole, Result: &pool.Result{RequestID: "call_2", JSON: json.RawMessage(`"2024"`)}},
		"result-parts": {ID: fixedID(5), Role: pool.ToolRole, Result: &pool.Result{RequestID: "call_2", Parts: []pool.Part{
			{Type: pool.TextPart, Text: "two"}, {Type: "resource", Raw: json.RawMessage(`{"type":"resource","uri":"x:y"}`)}}}},
		"result-artifact": {ID: fixedID(6), Role: pool.ToolRole, Result: &pool.Result{RequestID: "call_2",
			SHA256: pool.HashOf([]byte("b")), Size: 9000, MediaType: "application/json"}},
		"imported": {ID: fixedID(7), Role: pool.System, Kind: "injected", Hidden: true, Unsent: true, Home: pool.Home{Segment: 2, Position: 3},
			Source:  &pool.Source{Format: "chatgpt", Conversation: "c", Node: "n", Role: "developer", Raw: []byte{0xff, 0x00}},
			AppData: map[string]json.RawMessage{"app": json.RawMessage(`[1, 2]`), "a/b": json.RawMessage(`null`)},
			Content: []pool.Part{{Type: "audio", Raw: json.RawMessage(`{"content_type":"audio", "s":1}`)}}},
		"unknown-keys": {ID: fixedID(8), Role: pool.Assistant, Extra: unknown, Meta: pool.Metadata{Extra: unknown},
			Content: []pool.Part{{Type: pool.TextPart, Text: "x", Extra: unknown}, {Type: "later", Extra: unknown}},
			Calls:   []pool.Call{{ID: "c", Tool: "t", Extra: unknown}}, Source: &pool.Source{Format: "f", Extra: unknown}},
		"unknown-result-keys": {ID: fixedID(9), Role: pool.ToolRole, Result: &pool.Result{RequestID: "c", Extra: unknown,
			Parts: []pool.Part{{Type: pool.TextPart, Extra: unknown}}}},
	}
}

// golden compares got with a file of testdata, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", filepath.FromSlash(name))
	if *updateGolden {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is\n%q, want\n%q", file, got, want)
	}
}

func TestGoldenRecords(t *testing.T) {
	for name, m := range goldenMessages() {
		t.Run(name, func(t *testing.T) {
			golden(t, "v2/"+name+".cbor", mustEncode(t, m))
			golden(t, "v2/"+name+".json", append(mustJSON(t, m), '\n'))
		})
	}
}

// The files of version 1 are read whatever this program would write.
func TestGoldenFilesAreRead(t *testing.T) {
	files, err := filepath.Glob("testdata/v2/*.cbor")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		record, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(strings.TrimSuffix(file, "cbor") + "json")
		if err != nil {
			t.Fatal(err)
		}
		m := mustDecode(t, record)
		if got := append(mustJSON(t, m), '\n'); !bytes.Equal(got, text) {
			t.Errorf("%s gives\n%s, want\n%s", file, got, text)
		}
		var fromJSON pool.Message
		if err := json.Unmarshal(text, &fromJSON); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		fromJSON.Home = m.Home
		if got := mustEncode(t, &fromJSON); !bytes.Equal(got, record) {
			t.Errorf("%s: from its JSON\n%x, want\n%x", file, got, record)
		}
	}
}

func TestGoldenEntry(t *testing.T) {
	e := &pool.Entry{Message: goldenMessages()["user"], Position: 3, Parent: fixedID(2), Turn: "u2", Session: 1, Tags: []string{"a", "b"}}
	text, err := e.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "v2/entry.txt", append(text, '\n'))
	queued, err := json.Marshal(pool.Entry{Message: pool.NewText(pool.User, "later"), Queued: true})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "v2/entry-queued.txt", append(queued, '\n'))
	var got pool.Entry
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if again, err := got.AppendJSON(nil); err != nil || !bytes.Equal(again, text) {
		t.Errorf("%s, %v", again, err)
	}
	var m pool.Message
	if err := json.Unmarshal(text, &m); err != nil {
		t.Errorf("an entry read as a message: %v", err)
	}
}

func TestGoldenArtifact(t *testing.T) {
	db := memkv.New()
	defer db.Close()
	var dump bytes.Buffer
	update(t, db, func(tx kv.RwTx) error {
		dump.Reset()
		if _, err := poolstore.PutArtifact(tx, bytes.Repeat([]byte("x"), 600_000), "image/png"); err != nil {
			return err
		}
		if _, err := poolstore.PutArtifact(tx, nil, ""); err != nil {
			return err
		}
		return tx.Scan(poolstore.ArtifactBucket, kv.Range{}, func(key, value []byte) error {
			if len(value) > 100 {
				value = fmt.Appendf(nil, "(%d bytes)", len(value))
			} else {
				value = hex.AppendEncode(nil, value)
			}
			fmt.Fprintf(&dump, "%x %s\n", key, value)
			return nil
		})
	})
	golden(t, "v2/artifact.txt", dump.Bytes())
}

// Each fuzz target has seeds; without them it would test nothing in an ordinary run.
func TestFuzzSeeds(t *testing.T) {
	if *updateGolden {
		for name, m := range goldenMessages() {
			body := mustEncode(t, m)
			writeSeed(t, "FuzzDecode", name, body[:len(body)-4])
			writeSeed(t, "FuzzJSON", name, mustJSON(t, m))
		}
		for name, text := range handWritten {
			writeSeed(t, "FuzzJSON", name, []byte(text))
		}
	}
	tests, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	targets := 0
	for _, file := range tests {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`).FindAllSubmatch(source, -1) {
			targets++
			if entries, err := os.ReadDir(filepath.Join("testdata/fuzz", string(match[1]))); err != nil || len(entries) == 0 {
				t.Errorf("%s has no seeds (%v)", match[1], err)
			}
		}
	}
	if targets < 2 {
		t.Errorf("%d fuzz targets", targets)
	}
}

func writeSeed(t *testing.T, target, name string, data []byte) {
	t.Helper()
	folder := filepath.Join("testdata/fuzz", target)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	seed := fmt.Sprintf("go test fuzz v1\n[]byte(%q)\n", data)
	if err := os.WriteFile(filepath.Join(folder, strings.ReplaceAll(name, " ", "-")), []byte(seed), 0o644); err != nil {
		t.Fatal(err)
	}
}

// handWritten is JSON as people and other programs write it.
var handWritten = map[string]string{
	"plain string":  `{"role":"user","content":"hello"}`,
	"only a call":   `{"role":"assistant","tool_calls":[{"id":"c","tool_name":"t","arguments":{"a" : 1}}]}`,
	"only a result": `{"role":"tool","tool_result":{"request_id":"c","result":null}}`,
	"data":          `{"role":"user","content":[{"type":"image","media_type":"image/png","data":"iVBORw=="}]}`,
	"white space":   "{ \"role\" : \"user\" ,\n \"content\" : [ { \"type\" : \"odd\" , \"x\" : { } } ] , \"app_data\" : { \"~/\" : [ 1 ] } }",
	"exact":         `{"role":"assistant","content":[],"tool_calls":[{"tool_name":"t","arguments":null}],"exact":{"/tool_calls/0/arguments":" null"}}`,
	"extra":         `{"role":"user","content":[{"type":"x"}],"extra":{"/content/0":"ogFheBhkAQ==","":"oRhkAQ=="}}`,
	"times":         `{"role":"user","content":"","created_at":"2024-02-30T00:00:00+01:00","metadata":{"completed_at":"2024-02-03T00:00:00.5+01:00"}}`,
}
