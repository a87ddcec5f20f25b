package chatctx

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/grant"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// cut is a text that was cut in the middle of a character, never a time that no calendar has.
const (
	cut   = "Stra\xc3"
	never = pool.Time(1 << 61)
)

// spoiler puts what no reader takes into one of the texts and times that a door takes, another one each round.
type spoiler struct {
	round, seen int
	path        string // of what was spoiled, "" where all rounds are done
	json        bool   // it is a value of JSON
}

func (s *spoiler) in(args ...any) {
	for i, a := range args {
		s.value(fmt.Sprint(i), reflect.ValueOf(a).Elem())
	}
}

// leaf says whether it is this one's turn.
func (s *spoiler) leaf(path string) bool {
	s.seen++
	if s.seen-1 == s.round {
		s.path = path
	}
	return s.path == path
}

func (s *spoiler) value(path string, v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[pool.Time]():
		if s.leaf(path) {
			v.SetInt(int64(never))
		}
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		if s.leaf(path) {
			s.json = true
			v.SetBytes([]byte(`"` + cut + `"`))
		}
	case v.Kind() == reflect.String:
		if s.leaf(path) {
			v.SetString(v.String() + cut)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				s.value(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		}
	case v.Kind() == reflect.Pointer && !v.IsNil():
		s.value(path, v.Elem())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		for i := range v.Len() {
			s.value(fmt.Sprint(path, i), v.Index(i))
		}
	case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String:
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			s.value(path+"."+key.String(), value)
			v.SetMapIndex(key, value)
			if s.leaf(path + "." + key.String() + " key") {
				v.SetMapIndex(key, reflect.Value{})
				v.SetMapIndex(reflect.ValueOf(key.String()+cut).Convert(key.Type()), value)
			}
		}
	}
}

// textWay is a way for texts into a store: it tells of all that it takes before it takes them.
type textWay func(t *testing.T, s *Store, c *ChatContext, spoil func(args ...any)) error

func batchDoor[T any](of T, fn func(*Batch, T)) textWay {
	return func(t *testing.T, _ *Store, c *ChatContext, spoil func(args ...any)) error {
		own := deepCopy(reflect.ValueOf(of)).Interface().(T)
		spoil(&own)
		b := c.Begin("")
		fn(b, own)
		_, err := b.Commit(t.Context())
		return err
	}
}

func storeDoor[T any](of T, fn func(*testing.T, *Store, *ChatContext, T) error) textWay {
	return func(t *testing.T, s *Store, c *ChatContext, spoil func(args ...any)) error {
		own := deepCopy(reflect.ValueOf(of)).Interface().(T)
		spoil(&own)
		return fn(t, s, c, own)
	}
}

// deepCopy is a value that shares nothing with another.
func deepCopy(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(deepCopy(v.Elem()))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(deepCopy(v.Field(i)))
			}
		}
	case v.Kind() == reflect.Slice && !v.IsNil():
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(deepCopy(v.Index(i)))
		}
	case v.Kind() == reflect.Map && !v.IsNil():
		out.Set(reflect.MakeMap(v.Type()))
		for _, key := range v.MapKeys() {
			out.SetMapIndex(key, deepCopy(v.MapIndex(key)))
		}
	}
	return out
}

type (
	named struct {
		Name  string
		Value json.RawMessage
	}
	referred struct {
		Ref  record.Ref
		Text string
	}
)

var (
	someValue  = json.RawMessage(`{"a":1}`)
	someValues = map[string]json.RawMessage{"app.k": someValue}
	someTool   = record.Tool{Name: "n", Description: "d", Schema: someValue, Command: []string{"ls"}, Dir: "d", Env: map[string]string{"E": "v"}, Remotes: []record.Remote{{Name: "r", Description: "d", Schema: someValue}}}
	someRule   = record.Rule{Effect: record.Ask, Tool: "t", When: []record.Condition{{Argument: "a", Op: "equals", Value: "v"}}, Unless: []record.Condition{{Argument: "a", Op: "equals", Value: "w"}}, Reason: "r", Mode: "m"}
)

func someMessages() []*Message {
	return []*Message{
		{Role: pool.User, Kind: "note", Content: []pool.Part{{Type: pool.TextPart, Text: "t"}, {Type: pool.ImagePart, URL: "u", MediaType: "image/png", Name: "n"}},
			Meta: pool.Metadata{Model: "m", Provider: "p", ProviderData: map[string]json.RawMessage{"k": someValue}}, AppData: map[string]json.RawMessage{"k": someValue}},
		{Role: pool.Assistant, Content: []pool.Part{{Type: pool.ThinkingPart, Text: "t", Signature: "s", Provider: "p"}}, Calls: []pool.Call{{ID: "c", Tool: "t", Arguments: someValue, Reason: "r"}}},
		{Role: pool.ToolRole, Result: &pool.Result{RequestID: "q", Tool: "t", Text: "t", CompactSummary: "c", Parts: []pool.Part{{Type: pool.TextPart, Text: "t"}}}},
	}
}

func someSessions() []branch.Session {
	return []branch.Session{{ID: pool.NewID(), Start: 1, Digests: []branch.Digest{{From: 1, To: 1, Text: "t"}}, Data: map[string]json.RawMessage{"k": someValue}}}
}

// unreadableDoors are the public methods that take a text or a time and store it, by their names.
var unreadableDoors = map[string]textWay{
	"Batch.Append":       batchDoor(someMessages(), func(b *Batch, m []*Message) { b.Append(m...) }),
	"Batch.AppendWith":   batchDoor(AppendOptions{Key: "k"}, func(b *Batch, o AppendOptions) { b.AppendWith(o, says("a")...) }),
	"Batch.Insert":       batchDoor(someMessages(), func(b *Batch, m []*Message) { b.Insert("@1", m...) }),
	"Batch.Insert at":    batchDoor(record.Ref("@1"), func(b *Batch, r record.Ref) { b.Insert(r, says("a")...) }),
	"Batch.Edit":         batchDoor(referred{"@1", "t"}, func(b *Batch, a referred) { b.Edit(a.Ref, a.Text, record.EditOptions{}) }),
	"Batch.Edit as":      batchDoor(record.EditOptions{Name: "n"}, func(b *Batch, o record.EditOptions) { b.Edit("@1", "t", o) }),
	"Batch.Fork":         batchDoor("side", func(b *Batch, n string) { b.Fork(n, ForkOptions{}) }),
	"Batch.Fork at":      batchDoor(ForkOptions{At: "@1"}, func(b *Batch, o ForkOptions) { b.Fork("side", o) }),
	"Batch.RenameBranch": batchDoor([]string{"main", "other"}, func(b *Batch, n []string) { b.RenameBranch(n[0], n[1]) }),
	"Batch.PutLoose":     batchDoor(someMessages()[0], func(b *Batch, m *Message) { b.PutLoose(m) }),
	"Batch.Merge": batchDoor(MergeOptions{Summary: "s"}, func(b *Batch, o MergeOptions) {
		b.Fork("from", ForkOptions{})
		b.Append(says("more")...)
		b.Switch("main")
		b.Merge("from", o)
	}),
	"Batch.Name":               batchDoor("n", func(b *Batch, n string) { b.Name(n); b.SetPrompt("p") }),
	"Batch.Tag":                batchDoor(referred{"@1", "t"}, func(b *Batch, a referred) { b.Tag(a.Text, a.Ref) }),
	"Batch.Mark":               batchDoor(referred{"@1", "pinned"}, func(b *Batch, a referred) { b.Mark(a.Ref, a.Text) }),
	"Batch.Label":              batchDoor("l", func(b *Batch, l string) { b.Label(l) }),
	"Batch.SetTitle":           batchDoor("t", func(b *Batch, text string) { b.SetTitle(text) }),
	"Batch.SetSystem":          batchDoor("t", func(b *Batch, text string) { b.SetSystem(text) }),
	"Batch.SetPrompt":          batchDoor("t", func(b *Batch, text string) { b.SetPrompt(text) }),
	"Batch.SetSettings":        batchDoor(someValues, func(b *Batch, v map[string]json.RawMessage) { b.SetSettings(v) }),
	"Batch.SetContextSettings": batchDoor(someValues, func(b *Batch, v map[string]json.RawMessage) { b.SetContextSettings(v) }),
	"Batch.SetContextData":     batchDoor(named{"k", someValue}, func(b *Batch, v named) { b.SetContextData(v.Name, v.Value) }),
	"Batch.SetBranchData":      batchDoor(named{"k", someValue}, func(b *Batch, v named) { b.SetBranchData(v.Name, v.Value) }),
	"Batch.SetMessageData":     batchDoor(named{"k", someValue}, func(b *Batch, v named) { b.SetMessageData("@1", v.Name, v.Value) }),
	"Batch.SetMessageData of":  batchDoor(record.Ref("@1"), func(b *Batch, r record.Ref) { b.SetMessageData(r, "k", someValue) }),
	"Batch.SetCompactSummary":  batchDoor(referred{"@3", "t"}, func(b *Batch, a referred) { b.SetCompactSummary(a.Ref, a.Text) }),
	"Batch.SetSessions":        batchDoor(someSessions(), func(b *Batch, v []branch.Session) { b.SetSessions(v) }),
	"Batch.PutTool":            batchDoor(someTool, func(b *Batch, v record.Tool) { b.PutTool(v) }),
	"Batch.AddRule":            batchDoor(someRule, func(b *Batch, v record.Rule) { b.AddRule(v, record.RuleScope{}) }),
	"Batch.AddRule scope":      batchDoor(record.RuleScope{Call: "x"}, func(b *Batch, v record.RuleScope) { b.AddRule(someRule, v) }),
	"Batch.ExpireCall":         batchDoor(pool.Time(1), func(b *Batch, at pool.Time) { b.ExpireCall("x", at+pool.Time(time.Now().Add(time.Hour).UnixMicro())) }),
	"Batch.Decide":             batchDoor(record.Verdict{Status: pool.Denied, Name: "n", Reason: "r"}, func(b *Batch, v record.Verdict) { b.Decide("x", v) }),
	"Batch.Decide with":        batchDoor(record.Verdict{Status: pool.Approved, Arguments: someValue}, func(b *Batch, v record.Verdict) { b.Decide("x", v) }),
	"Store.SetSettings": storeDoor(someValues, func(t *testing.T, s *Store, _ *ChatContext, v map[string]json.RawMessage) error {
		_, err := s.SetSettings(t.Context(), v)
		return err
	}),
	"Store.PutTool": storeDoor(someTool, func(t *testing.T, s *Store, _ *ChatContext, v record.Tool) error {
		_, err := s.PutTool(t.Context(), v)
		return err
	}),
	"Store.AddRule": storeDoor(someRule, func(t *testing.T, s *Store, _ *ChatContext, v record.Rule) error {
		_, err := s.AddRule(t.Context(), v)
		return err
	}),
	"Store.AddToken": storeDoor([]string{"name", "read"}, func(t *testing.T, s *Store, _ *ChatContext, v []string) error {
		_, err := grant.Add(t.Context(), base.Of(s), v[0], v[1:])
		return err
	}),
	"Store.PutArtifact": storeDoor("text/plain", func(t *testing.T, s *Store, _ *ChatContext, v string) error {
		_, err := s.PutArtifact(t.Context(), []byte("a"), v)
		return err
	}),
	"Store.SetModelWindow": storeDoor([]string{"server", "model"}, func(t *testing.T, s *Store, _ *ChatContext, v []string) error {
		return view.SetModelWindow(t.Context(), base.Of(s), v[0], v[1], view.ModelWindow{Tokens: 1})
	}),
	"Store.New": storeDoor(record.NewContext{Title: "t", System: "s", Prompt: "p", Settings: someValues, Messages: someMessages()[:1]}, func(t *testing.T, s *Store, _ *ChatContext, v record.NewContext) error {
		_, err := s.New(t.Context(), v)
		return err
	}),
	"Store.Copy": storeDoor("title", func(t *testing.T, s *Store, c *ChatContext, v string) error {
		_, err := s.Copy(t.Context(), c.ID.String(), v, false)
		return err
	}),
	"Store.As": storeDoor("name", func(t *testing.T, s *Store, c *ChatContext, v string) error {
		b := s.As(v).Begin(c.ID.String(), "")
		b.SetPrompt("p")
		_, err := b.Commit(t.Context())
		return err
	}),
	"Store.Import": storeDoor(&record.Incoming{Format: "f", Conversation: "c", Title: "t", System: "s", Prompt: "p", Settings: someValues, AppData: someValues, Labels: []string{"l"},
		Nodes: []record.Node{{ID: "1", Message: says("a")[0]}}, Loose: says("b"), Branches: []record.IncomingBranch{{Name: "main", Leaf: 1, System: "s", Prompt: "p", Settings: someValues, Sessions: someSessions()}}},
		func(t *testing.T, s *Store, _ *ChatContext, v *record.Incoming) error {
			v.Conversation += t.Name()
			_, err := s.Import(t.Context(), []*record.Incoming{v})
			return err
		}),
	"Titles.Give": storeDoor("title", func(t *testing.T, s *Store, _ *ChatContext, v string) error {
		c, err := s.New(t.Context(), record.NewContext{Messages: says("a")})
		if err == nil {
			_, err = journal.NewTitles(base.Of(s)).Give(t.Context(), c.ID.String(), v, nil)
		}
		return err
	}),
	"ChatContext.SetCounts": storeDoor("encoding", func(t *testing.T, _ *Store, c *ChatContext, v string) error {
		return c.SetCounts(t.Context(), v, []ID{pool.NewID()}, []int{1})
	}),
	"ChatContext.BeginReply": storeDoor(AppendOptions{Key: "k"}, func(t *testing.T, _ *Store, c *ChatContext, v AppendOptions) error {
		_, err := c.BeginReply(t.Context(), "", v, says("q")...)
		return err
	}),
	"ChatContext.BeginReply of": storeDoor(someMessages()[0], func(t *testing.T, _ *Store, c *ChatContext, v *Message) error {
		_, err := c.BeginReply(t.Context(), "", AppendOptions{}, v)
		return err
	}),
	"ChatContext.StartTask": storeDoor(record.NewTask{NewContext: record.NewContext{Title: "t"}, Task: record.Task{Goal: "g"}, Tools: []record.Tool{someTool}}, func(t *testing.T, _ *Store, c *ChatContext, v record.NewTask) error {
		_, err := c.StartTask(t.Context(), "", v)
		return err
	}),
	"ChatContext.EndTask": storeDoor(record.TaskEnd{State: record.TaskReturned, Summary: "s"}, func(t *testing.T, _ *Store, c *ChatContext, v record.TaskEnd) error {
		child, err := c.StartTask(t.Context(), "", record.NewTask{Task: record.Task{Goal: "g"}})
		if err == nil {
			_, err = child.EndTask(t.Context(), v)
		}
		return err
	}),
	"Reply.Save": inReply(someMessages()[1], func(t *testing.T, r *Reply, v *Message) error { return r.Save(t.Context(), v) }),
	"Reply.Finish": inReply(Ending{Messages: says(">a"), Loose: says("b"), Sessions: someSessions(), Provider: "p", Request: []byte("r")}, func(t *testing.T, r *Reply, v Ending) error {
		_, err := r.Finish(t.Context(), v)
		return err
	}),
	"Store.ClaimCall": storeDoor(record.ClaimOptions{Name: "n"}, func(t *testing.T, s *Store, c *ChatContext, v record.ClaimOptions) error {
		if _, err := decide(c, "", "x", record.Verdict{Status: pool.Approved}); err != nil {
			return err
		}
		_, err := s.ClaimCall(t.Context(), c.ID.String(), "", "x", v)
		return err
	}),
	"CallClaim.Resolve": storeDoor(record.CallAnswer{Result: pool.Result{Text: "t"}, Beside: says("b")[0].Content, Kind: "k", By: "b"}, func(t *testing.T, s *Store, c *ChatContext, v record.CallAnswer) error {
		if _, err := decide(c, "", "x", record.Verdict{Status: pool.Approved}); err != nil {
			return err
		}
		k, err := s.ClaimCall(t.Context(), c.ID.String(), "", "x", record.ClaimOptions{})
		if err == nil {
			_, err = k.Resolve(t.Context(), v)
		}
		return err
	}),
}

func inReply[T any](of T, fn func(*testing.T, *Reply, T) error) textWay {
	return storeDoor(of, func(t *testing.T, _ *Store, c *ChatContext, v T) error {
		begun, err := c.BeginReply(t.Context(), "", AppendOptions{}, says("q")...)
		if err == nil {
			err = fn(t, begun.Reply, v)
		}
		return err
	})
}

var (
	// ofMessage: JSON in messages comes from models and tools, and is made whole.
	ofMessage = regexp.MustCompile("Message|Append|Insert|PutLoose|BeginReply|Loose|Result|Beside|Nodes")
	// notKept is what a method has no use for, or reads of a foreign file as far as it can be read.
	notKept = regexp.MustCompile(`^((Store|Batch).AddRule 0.(By|Created)|ChatContext.StartTask 0.Task.(BranchName|State)|(Store|Batch).PutTool 0.Remote|ChatContext.StartTask 0.Tools0.Remote|CallClaim.Resolve 0.Result.(RequestID|Tool)|Batch.(Append|Insert) 01.Calls0.(Status|Execution|Reason)|.*Calls0\.(Effective|ChangedBy.*)|Store.Import .*)$`)
)

// TestNothingUnreadableComesIn: text that is not UTF-8 and times that no calendar has are refused with ErrInvalid in each field of each public method that stores some, and
// afterwards all there is can be read.
func TestNothingUnreadableComesIn(t *testing.T) {
	for name, through := range unreadableDoors {
		t.Run(name, func(t *testing.T) {
			var hook func(*Message) error
			s, _ := hooked(t, &hook)
			for round := 0; ; round++ {
				c := newContext(t, s, "a")
				appendTo(t, c, "", &Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "x", Tool: "t"}}}, &Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "y", Text: "r"}})
				spoil := &spoiler{round: round}
				err := through(t, s, c, spoil.in)
				if spoil.path == "" {
					if err != nil {
						t.Errorf("with nothing that is wrong: %v", err)
					}
					if round == 0 {
						t.Error("it takes nothing")
					}
					break
				}
				if err == nil && (spoil.json && ofMessage.MatchString(name+spoil.path) || notKept.MatchString(name+" "+spoil.path)) {
					continue
				}
				if !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrNotFound) {
					t.Errorf("%s: %v", spoil.path, err)
				}
				if err != nil && strings.Contains(err.Error(), "\xc3") {
					t.Errorf("%s: the error has the text itself: %q", spoil.path, err)
				}
			}
			readAll(t, s)
		})
	}
}

// readAll reads everything that can be listed, and writes it as JSON.
func readAll(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	var contexts []*record.ContextInfo
	for info, err := range s.Contexts(ctx, record.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		contexts = append(contexts, info)
	}
	tokens, err1 := grant.List(ctx, base.Of(s))
	settings, err2 := s.Settings(ctx)
	_, err3 := toolcall.CallLog(ctx, base.Of(s), ID{})
	_, err4 := view.Labels(ctx, base.Of(s))
	if err := cmp.Or(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	all := []any{contexts, tokens, settings}
	for _, info := range contexts {
		c, err := s.Context(ctx, info.ID.String())
		if err != nil {
			t.Fatal(err)
		}
		branches, err1 := c.Branches(ctx)
		draft, err2 := c.Draft(ctx, "")
		rules, err3 := s.Rules(ctx, info.ID)
		tools, err4 := s.Tools(ctx, info.ID)
		tags, err5 := c.Tags(ctx)
		marks, err6 := c.Marks(ctx)
		snapshot, err7 := c.Snapshot(ctx, "")
		if err := cmp.Or(err1, err2, err3, err4, err5, err6, err7); err != nil {
			t.Fatal(err)
		}
		page, err := snapshot.Page(ctx, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		for op, err := range journal.AllOperations(ctx, base.Of(s), info.ID.String()) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, op)
		}
		all = append(all, branches, draft.Messages, rules, tools, tags, marks, page)
	}
	raw, err := json.Marshal(all)
	if err != nil {
		t.Error(err)
	}
	if strings.Contains(string(raw), `Stra\ufffd`) {
		t.Error("a text that was cut is in the store")
	}
}

// cutSecrets puts a text that was cut where the secret is, everywhere in a value.
func cutSecrets(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes(bytes.ReplaceAll(v.Bytes(), []byte(secret), []byte(cut)))
	case v.Kind() == reflect.String:
		v.SetString(strings.ReplaceAll(v.String(), secret, cut))
	case v.Kind() == reflect.Pointer && !v.IsNil():
		cutSecrets(v.Elem())
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				cutSecrets(v.Field(i))
			}
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			cutSecrets(v.Index(i))
		}
	}
}

// TestWhatTheHookGivesIsChecked: an embedder's hook that cuts a text badly is refused like anybody else, through whatever door the text comes.
func TestWhatTheHookGivesIsChecked(t *testing.T) {
	for name, through := range textDoors {
		t.Run(name, func(t *testing.T) {
			var hook func(*Message) error
			s, c := hooked(t, &hook)
			hook = func(m *Message) error {
				cutSecrets(reflect.ValueOf(m))
				return nil
			}
			if err := through(t, s, c); !errors.Is(err, ErrInvalid) {
				t.Errorf("%v", err)
			}
			if running, _ := view.Running(t.Context(), base.ContextOf(c.Store(), c.ID), ""); running != nil {
				_, _ = c.Settle(t.Context(), "", SettleOptions{Force: true})
			}
			readAll(t, s)
		})
	}
}

// TestUnreadableRecordsAreFound: where something else than this package wrote what no reader takes, check tells of it and repair takes it away.
func TestUnreadableRecordsAreFound(t *testing.T) {
	s := openAny(t, Options{Program: "test", Judge: byName{}})
	defer closeChecked(t, s)
	c := newContext(t, s, "a")
	if _, err := grant.Add(t.Context(), base.Of(s), "whole", []string{"read"}); err != nil {
		t.Fatal(err)
	}
	raw, err := cbor.Marshal(map[uint64]any{1: cut})
	if err != nil {
		t.Fatal(err)
	}
	raw = stored.AddChecksum(raw, nil)
	places := map[string][]byte{base.TokenBucket: make([]byte, 32), base.ToolBucket: base.Under(c.ID, 't'), base.RuleBucket: make([]byte, 32)}
	err = s.at().DB.Update(t.Context(), func(tx kv.RwTx) error {
		for bucket, key := range places {
			if err := tx.Put(bucket, key, raw); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	if err := s.Maintenance().Check(t.Context(), CheckOptions{Full: true}, func(p record.Problem) { found[strings.Fields(p.Where)[0]] = true }); err != nil || !found[base.TokenBucket] || !found[base.ToolBucket] || !found[base.RuleBucket] {
		t.Errorf("check finds %v, %v", found, err)
	}
	if _, err := s.Maintenance().Repair(t.Context(), record.RepairOptions{}); err != nil {
		t.Fatal(err)
	}
	if tokens, err := grant.List(t.Context(), base.Of(s)); err != nil || len(tokens) != 1 || tokens[0].Name != "whole" {
		t.Errorf("%v %v", tokens, err)
	}
	readAll(t, s)
}
