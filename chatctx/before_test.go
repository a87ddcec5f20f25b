package chatctx

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// secret is what the hook of these tests takes out of every text.
const secret = "hunter2"

func redacting(m *Message) error {
	id := m.ID
	m.ID = pool.NewID() // JSON has one
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	clean := &Message{}
	err = json.Unmarshal(bytes.ReplaceAll(raw, []byte(secret), []byte("*******")), clean)
	*m = *clean
	m.ID = id
	return err
}

// textDoors are all ways for a text into a store; each uses the secret.
var textDoors = map[string]func(t *testing.T, s *Store, c *ChatContext) error{
	"append":   batched(func(b *Batch) { b.Append(says(secret)...) }),
	"insert":   batched(func(b *Batch) { b.Insert("@1", says(secret)...) }),
	"edit":     batched(func(b *Batch) { b.Edit("@1", secret, record.EditOptions{}) }),
	"loose":    batched(func(b *Batch) { b.PutLoose(says(secret)[0]) }),
	"title":    batched(func(b *Batch) { b.SetTitle("a " + secret) }),
	"system":   batched(func(b *Batch) { b.SetSystem(secret) }),
	"prompt":   batched(func(b *Batch) { b.SetPrompt(secret) }),
	"summary":  batched(func(b *Batch) { b.SetCompactSummary("@3", secret) }),
	"settings": batched(func(b *Batch) { b.SetSettings(secretJSON()) }),
	"context settings": batched(func(b *Batch) {
		b.SetContextSettings(map[string]json.RawMessage{"app.k": json.RawMessage(` { "list" : ["` + secret + `\n", 1.50] } `)})
	}),
	"context data": batched(func(b *Batch) { b.SetContextData("k", secretJSON()["app.k"]) }),
	"branch data":  batched(func(b *Batch) { b.SetBranchData("k", secretJSON()["app.k"]) }),
	"message data": batched(func(b *Batch) { b.SetMessageData("@1", "k", secretJSON()["app.k"]) }),
	"sessions": batched(func(b *Batch) {
		b.SetSessions([]branch.Session{{ID: pool.NewID(), Start: 1, Digests: []branch.Digest{{From: 1, To: 1, Text: secret}}, Data: secretJSON()}})
	}),
	"rule": batched(func(b *Batch) {
		b.AddRule(record.Rule{Effect: record.Ask, Tool: "t", Reason: secret}, record.RuleScope{})
	}),
	"tool": batched(func(b *Batch) {
		b.PutTool(record.Tool{Name: "n", Description: secret, Schema: json.RawMessage(`{"description":"` + secret + `"}`), Remotes: []record.Remote{{Name: "r", Description: secret}}})
	}),
	"deny": batched(func(b *Batch) { b.Decide("x", record.Verdict{Status: pool.Denied, Reason: secret}) }),
	"approve": batched(func(b *Batch) {
		b.Decide("x", record.Verdict{Status: pool.Approved, Reason: secret, Arguments: secretJSON()["app.k"]})
	}),
	"merge": func(t *testing.T, _ *Store, c *ChatContext) error {
		b := c.Begin("")
		b.Fork("from", ForkOptions{Stay: true})
		commit(t, b)
		appendTo(t, c, "from", says("more")...)
		return batched(func(b *Batch) { b.Merge("from", MergeOptions{Summary: secret}) })(t, nil, c)
	},
	"store settings": func(t *testing.T, s *Store, _ *ChatContext) error {
		_, err := s.SetSettings(t.Context(), secretJSON())
		return err
	},
	"store rule": func(t *testing.T, s *Store, _ *ChatContext) error {
		_, err := s.AddRule(t.Context(), record.Rule{Effect: record.Ask, Tool: "t", Reason: secret})
		return err
	},
	"store tool": func(t *testing.T, s *Store, _ *ChatContext) error {
		_, err := s.PutTool(t.Context(), record.Tool{Name: "n", Description: secret})
		return err
	},
	"artifact": func(t *testing.T, s *Store, _ *ChatContext) error {
		_, err := s.PutArtifact(t.Context(), []byte("a "+secret), "text/plain")
		return err
	},
	"copy": func(t *testing.T, s *Store, c *ChatContext) error {
		_, err := s.Copy(t.Context(), c.ID.String(), secret, false)
		return err
	},
	"new": func(t *testing.T, s *Store, _ *ChatContext) error {
		_, err := s.New(t.Context(), record.NewContext{Title: secret, System: secret, Prompt: secret, Settings: secretJSON(), Messages: says(secret)})
		return err
	},
	"begin reply": func(t *testing.T, _ *Store, c *ChatContext) error {
		_, err := c.BeginReply(t.Context(), "", AppendOptions{}, says(secret)...)
		return err
	},
	"queue and reply": func(t *testing.T, _ *Store, c *ChatContext) error {
		begun, err := c.BeginReply(t.Context(), "", AppendOptions{}, says("q")...)
		if err != nil {
			return err
		}
		if _, err := c.BeginReply(t.Context(), "", AppendOptions{}, says(secret)...); err != nil {
			return err
		}
		partial := says(">" + secret)[0]
		if err := begun.Reply.Save(t.Context(), partial); err != nil {
			return err
		}
		want(t, partial.Text(), ">"+secret) // it goes on growing
		_, err = begun.Reply.Finish(t.Context(), Ending{Messages: says(">" + secret), Stop: true,
			Sessions: []branch.Session{{ID: pool.NewID(), Start: 1, Digests: []branch.Digest{{From: 1, To: 1, Text: secret}}}}})
		return err
	},
	"partial": func(t *testing.T, _ *Store, c *ChatContext) error {
		begun, err := c.BeginReply(t.Context(), "", AppendOptions{}, says("q")...)
		if err != nil {
			return err
		}
		return begun.Reply.Save(t.Context(), says(">" + secret)[0])
	},
	"result": func(t *testing.T, s *Store, c *ChatContext) error {
		if _, err := decide(c, "", "x", record.Verdict{Status: pool.Approved}); err != nil {
			return err
		}
		k, err := s.ClaimCall(t.Context(), c.ID.String(), "", "x", record.ClaimOptions{})
		if err != nil {
			return err
		}
		_, err = k.Resolve(t.Context(), record.CallAnswer{Result: pool.Result{JSON: secretJSON()["app.k"]}, Beside: says(secret)[0].Content})
		return err
	},
	"task": func(t *testing.T, _ *Store, c *ChatContext) error {
		child, err := c.StartTask(t.Context(), "", record.NewTask{NewContext: record.NewContext{Title: secret, Messages: says(secret)}, Task: record.Task{Goal: secret},
			Tools: []record.Tool{{Name: "n", Description: secret}}})
		if err != nil {
			return err
		}
		_, err = child.EndTask(t.Context(), record.TaskEnd{State: record.TaskFailed, Summary: secret})
		return err
	},
	"import": func(t *testing.T, s *Store, _ *ChatContext) error {
		_, err := s.Import(t.Context(), []*record.Incoming{{Format: "f", Title: secret, System: secret, Prompt: secret, Settings: secretJSON(), AppData: secretJSON(),
			Nodes: []record.Node{{ID: "1", Message: says(secret)[0]}}, Loose: says(secret),
			Branches: []record.IncomingBranch{{Name: "main", Leaf: 1, System: secret, Prompt: secret, Settings: secretJSON(),
				Sessions: []branch.Session{{ID: pool.NewID(), Start: 1, Data: secretJSON()}}}}}})
		return err
	},
	"native": func(t *testing.T, s *Store, _ *ChatContext) error {
		i, err := intake.NewImportRun(base.Of(s), care.RemoveContext).Native(t.Context(), record.Native{ID: pool.NewID(), Title: secret, Active: "main", Settings: secretJSON(), AppData: secretJSON()})
		if err != nil {
			return err
		}
		err = i.Branch(t.Context(), record.NativeBranch{Name: "main", System: secret, Prompt: secret, Settings: secretJSON(), AppData: secretJSON(),
			Sessions: []branch.Session{{ID: pool.NewID(), Start: 1, Data: secretJSON()}}})
		if err != nil {
			return err
		}
		m := &Message{ID: pool.NewID(), Role: pool.Assistant, Content: says(secret)[0].Content, Calls: []pool.Call{{ID: "c", Tool: "t", Status: pool.Denied, Execution: pool.NotRun}}}
		err = i.Append(t.Context(), []*Message{m}, []record.NativeCall{{Message: m.ID, CallRecord: record.CallRecord{CallID: "c", Tool: "t", Status: pool.Denied, Execution: pool.NotRun, Reason: secret,
			Effective: secretJSON()["app.k"], Decisions: []record.Decision{{From: "pending/none", To: "denied/none", Reason: secret, Arguments: secretJSON()["app.k"]}}}}})
		if err != nil {
			return err
		}
		_, err = i.Finish(t.Context())
		return err
	},
}

func secretJSON() map[string]json.RawMessage {
	return map[string]json.RawMessage{"app.k": json.RawMessage(`{"text": "` + secret + `"}`)}
}

func batched(fn func(*Batch)) func(*testing.T, *Store, *ChatContext) error {
	return func(t *testing.T, _ *Store, c *ChatContext) error {
		b := c.Begin("main")
		fn(b)
		_, err := b.Commit(t.Context())
		return err
	}
}

// hooked is a store with a hook and a context with a message of each kind.
func hooked(t *testing.T, hook *func(*Message) error) (*Store, *ChatContext) {
	t.Helper()
	s, err := OpenDB(memkv.New(), Options{Program: "test", By: "me", Judge: byName{}, BeforeStore: func(m *Message) error {
		if *hook == nil {
			return nil
		}
		return (*hook)(m)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		checkStore(t, s)
		s.at().Close()
	})
	c := newContext(t, s, "a")
	appendTo(t, c, "", &Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "x", Tool: "t"}}},
		&Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "y", Text: "r"}})
	return s, c
}

// contents are all keys and values of a store.
func contents(t *testing.T, s *Store) string {
	t.Helper()
	var all strings.Builder
	err := s.at().DB.View(t.Context(), func(tx kv.Tx) error {
		all.Reset()
		for _, bucket := range everyBucket {
			err := tx.Scan(bucket, kv.Range{}, func(key, value []byte) error {
				all.WriteString(bucket)
				all.Write(key)
				all.Write(value)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestEveryTextPassesTheHook: what the hook takes out of a text is nowhere in the store, through whatever door it comes.
func TestEveryTextPassesTheHook(t *testing.T) {
	for name, door := range textDoors {
		t.Run(name, func(t *testing.T) {
			var hook func(*Message) error
			s, c := hooked(t, &hook)
			hook = redacting
			if err := door(t, s, c); err != nil {
				t.Fatal(err)
			}
			all := contents(t, s)
			if strings.Contains(all, secret) {
				t.Error("the secret is in the store")
			}
			if !strings.Contains(all, "*******") {
				t.Error("what the hook puts in its place is not")
			}
		})
	}
}

// TestTheHookRefuses: a text that the hook refuses is not stored, and nothing else of the change.
func TestTheHookRefuses(t *testing.T) {
	no := errors.New("no secrets here")
	for name, door := range textDoors {
		t.Run(name, func(t *testing.T) {
			var hook func(*Message) error
			s, c := hooked(t, &hook)
			hook = func(m *Message) error {
				raw, err := poolstore.Encode(m)
				if err == nil && bytes.Contains(raw, []byte(secret)) {
					err = no
				}
				return err
			}
			if err := door(t, s, c); !errors.Is(err, no) {
				t.Errorf("%v", err)
			}
			if strings.Contains(contents(t, s), secret) {
				t.Error("the secret is in the store")
			}
			if running, _ := view.Running(t.Context(), base.ContextOf(c.Store(), c.ID), ""); running != nil {
				_, _ = c.Settle(context.Background(), "", SettleOptions{Force: true})
			}
		})
	}
}

// TestTheHookSeesWhatATextIs holds the kinds that Options names.
func TestTheHookSeesWhatATextIs(t *testing.T) {
	var hook func(*Message) error
	s, c := hooked(t, &hook)
	var kinds []string
	hook = func(m *Message) error {
		if m.ID == (ID{}) {
			kinds = append(kinds, m.Kind)
		}
		return nil
	}
	for _, door := range []string{"title", "system", "edit", "settings", "context data", "summary", "sessions", "rule", "approve", "tool", "artifact"} {
		if err := textDoors[door](t, s, c); err != nil {
			t.Fatal(door, err)
		}
	}
	kinds = slices.Compact(kinds)
	if want := []string{"title", "prompt", "edit", "setting", "data", "summary", "digest", "data", "reason", "arguments", "tool", "artifact"}; !slices.Equal(kinds, want) {
		t.Errorf("%q, want %q", kinds, want)
	}
}

// TestTheHookKeepsJSONBytes: only the texts in a value change.
func TestTheHookKeepsJSONBytes(t *testing.T) {
	s := storeOf(&base.Store{Before: redacting})
	for in, out := range map[string]string{
		` { "hunter2" : [ 1.50, "hunter2 <\u00e9>", "\"", "\\" ] , "a":"b" } `: ` { "hunter2" : [ 1.50, "******* <é>", "\"", "\\" ] , "a":"b" } `,
		`"hunter2"`: `"*******"`, `{}`: `{}`, `12`: `12`, `""`: `""`, `{"a":"hunter2`: `{"a":"hunter2`,
	} {
		raw := json.RawMessage(in)
		if err := s.at().Value("data", &raw); err != nil {
			t.Error(in, err)
		}
		want(t, string(raw), out)
	}
}
