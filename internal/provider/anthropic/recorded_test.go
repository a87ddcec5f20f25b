package anthropic

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/chatctx/chatctx/pool"
)

// TestRecorded: recorded exchanges give a finished, complete message. One of them was damaged when it was collected: it is a compressed body that was read as
// text; it must give an error, not a message.
func TestRecorded(t *testing.T) {
	files, _ := filepath.Glob("../../../../shared/samples/anthropic-messages/*.response.sse")
	if len(files) == 0 {
		t.Skip("the recorded exchanges are not here")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			stream, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			m, err := suite.Read(bytes.NewReader(stream))
			if !bytes.HasPrefix(stream, []byte("event: ")) && utf8.Valid(stream) {
				if err == nil || m != nil {
					t.Fatalf("no events, yet %v, %v", m, err)
				}
				return
			}
			if err != nil || m.Unfinished || m.Meta.FinishReason == "" || m.Meta.InputTokens == nil || m.Meta.OutputTokens == nil {
				t.Fatalf("%+v, %v", m, err)
			}
			checkRecorded(t, stream, m)
			suite.Cut(t, stream)
		})
	}
}

// checkRecorded compares the numbers of blocks in the stream and in the message.
func checkRecorded(t *testing.T, stream []byte, m *pool.Message) {
	t.Helper()
	count := func(typ string) int {
		return bytes.Count(stream, []byte(`"content_block":{"type":"`+typ+`"`))
	}
	var text, thinking, calls int
	for _, p := range m.Content {
		switch p.Type {
		case pool.TextPart:
			text++
		case pool.ThinkingPart:
			thinking++
			if p.Signature == "" || p.Model != m.Meta.Model {
				t.Errorf("thinking without its signature or model: %+v", p)
			}
		case pool.CallPart:
			calls++
		}
	}
	if text != count("text") || thinking != count("thinking") || calls != count("tool_use") || calls != len(m.Calls) {
		t.Errorf("%d texts, %d thinking, %d calls of %d, %d, %d", text, thinking, calls, count("text"), count("thinking"), count("tool_use"))
	}
}
