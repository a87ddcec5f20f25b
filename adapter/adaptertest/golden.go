package adaptertest

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	_ "github.com/chatctx/chatctx/internal/provider/wiretest" // has the flag -update
	"github.com/chatctx/chatctx/pool"
)

// updating reports whether to write the golden files. The flag is wiretest's, whose golden files are in the same folders.
func updating() bool { return flag.Lookup("update").Value.String() == "true" }

// Golden compares the body of a conversation with every kind of content with a file.
func Golden(t *testing.T, s Subject, file string) {
	raw := s.body(t, everything(s.Provider, s.Models[0]))
	if err := s.Judge(s.Models[0], raw); err != nil {
		t.Errorf("%v\n%s", err, raw)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	if updating() {
		if err := os.WriteFile(file, pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(pretty.Bytes(), want) {
		t.Errorf("the body is not that of %s (run with -update to see the difference):\n%s", file, raw)
	}
}

// everything returns a conversation with every kind of content that a body can have.
func everything(provider, model string) *chatctx.Draft {
	m := &maker{provider: provider, model: model}
	d := &chatctx.Draft{System: "You help.", Prompt: "Be brief.", Settings: map[string]json.RawMessage{"model": json.RawMessage(`"` + model + `"`),
		"temperature": json.RawMessage("0.5"), "max_tokens": json.RawMessage("20000"), "thinking": json.RawMessage(`"medium"`), "cache.ttl": json.RawMessage(`"1h"`)}}
	through := map[string]string{"gemini": `gemini.serviceTier "standard"`, "ollama": `ollama.keep_alive "5m"`}[provider]
	if through == "" {
		through = provider + `.service_tier "auto"`
	}
	key, value, _ := strings.Cut(through, " ")
	d.Settings[key] = json.RawMessage(value)
	d.Tools = []record.Tool{{Name: "search", Description: "Looks things up.", Schema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`)},
		{Name: "read file"}}
	d.Summary = &chatctx.DraftMessage{}
	d.Summary.Message = m.user("They spoke of birds.")
	document := pool.Part{Type: pool.DocumentPart, Name: "notes.pdf", Data: []byte("%PDF-1.4\n")}
	signed := with(call("call:1"), func(c *pool.Call) {
		c.Provider, c.Model = provider, model
		c.Raw = json.RawMessage(`{"thoughtSignature":"` + Signature(provider, model) + `"}`)
	})
	failed := m.result("call:2", "")
	failed.Result.Parts, failed.Result.IsError = []pool.Part{{Type: pool.TextPart, Text: "no such file"}, picture(3)}, true
	for _, msg := range []*pool.Message{
		m.message(pool.User, []pool.Part{{Type: pool.TextPart, Text: "What is this? <b>&"}, picture(2), document}),
		m.thinks(provider, model, words([]string{"I will look."}), signed, named("call:2", "read file")),
		failed,
		m.result("call:1", "a pelican"),
		m.thinks("elsewhere", "other", words([]string{"It is a pelican."})),
		m.system("Speak French."),
		m.user("Again?"),
		m.calls(with(denied("call:3", "not now"), func(c *pool.Call) { c.Later = true })),
		m.user("Then go on."),
		m.result("call:3", ""),
		m.assistant("Un pélican."),
	} {
		entry := &chatctx.DraftMessage{}
		entry.Message = msg
		d.Messages = append(d.Messages, entry)
	}
	d.Messages[3].Cache = true
	return d
}
