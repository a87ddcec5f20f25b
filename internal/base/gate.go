package base

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// The gate before each transaction: every text from a person, a model, a tool or a file passes the embedder's hook here and nowhere else. Names, keys,
// patterns and the way tools are run do not pass the hook.
//
// Ready prepares messages that come in together for storage: ids, times, states of calls, the hook, validity.

// Ready prepares messages that come in together for being stored: ids, times, states of calls, the embedder's hook, validity.
func (s *Store) Ready(msgs []*pool.Message) error {
	if err := s.Fit(msgs); err != nil {
		return err
	}
	settle(msgs)
	return nil
}

// Fit is Ready for messages whose results come separately: it keeps the states of finished calls.
func (s *Store) Fit(msgs []*pool.Message) error {
	for i, m := range msgs {
		if m == nil {
			return Invalid("message %d is nil", i+1)
		}
		if m.ID == (pool.ID{}) {
			m.ID = pool.NewID()
		}
		if m.Created == 0 {
			m.Created = s.Now()
		}
		for j := range m.Calls {
			m.Calls[j].Arguments = jsontree.Unwrapped(m.Calls[j].Arguments)
			undecided(&m.Calls[j])
		}
		poolstore.MakeWhole(m) // strict readers take only whole messages
		if err := s.Message(m); err != nil {
			return err
		}
		if err := m.Validate(); err != nil {
			return fmt.Errorf("message %d: %w", i+1, err)
		}
		for j := range m.Calls {
			undecided(&m.Calls[j]) // the hook cannot decide either
		}
	}
	return nil
}

// Message passes a message through the hook, which cannot change its id.
func (s *Store) Message(m *pool.Message) error {
	if s.Before == nil {
		return nil
	}
	id := m.ID
	err := s.Before(m)
	m.ID = id
	return err
}

// Texts passes texts that are not messages through the hook. It refuses text that is not UTF-8.
func (s *Store) Texts(kind string, texts ...*string) error {
	for _, p := range texts {
		if s.Before != nil && *p != "" {
			m := pool.NewText(pool.System, *p)
			m.Kind = kind
			if err := s.Before(m); err != nil {
				return err
			}
			*p = m.Text()
		}
		if err := stored.CheckText(kind, *p); err != nil {
			return err
		}
	}
	return nil
}

// Title passes a title through the hook. It refuses one that no context can have.
func (s *Store) Title(title *string) error {
	if err := s.Texts("title", title); err != nil {
		return err
	}
	if len(*title) > maxTitle || strings.ContainsFunc(*title, unicode.IsControl) {
		return Invalid("a title must have at most %d bytes, and no control characters", maxTitle)
	}
	return nil
}

// maxTitle is the largest length of a title in bytes.
const maxTitle = 1024

// maxKey bounds a word in the key of a record, in bytes.
const maxKey = 1024

// CheckKey refuses a word that cannot stand in the key of a record. what names the word in the error.
func CheckKey(what, word string) error {
	if len(word) > maxKey {
		return Invalid("%s must have at most %d bytes, and has %d", what, maxKey, len(word))
	}
	return stored.CheckText(what, word)
}

// The marks of a message.
const (
	Pinned   = "pinned"   // it is in every request
	Excluded = "excluded" // it is in none
)

// CheckMark refuses a word that is no mark of a message. An empty one stands for none.
func CheckMark(mark string) error {
	if mark != "" && mark != Pinned && mark != Excluded {
		return Invalid("mark is %q, and has to be pinned or excluded, or empty", mark)
	}
	return nil
}

// Value passes the strings in a JSON value through the hook, except the keys of objects. All other bytes stay as they are.
func (s *Store) Value(kind string, raw *json.RawMessage) error {
	if s.Before == nil || bytes.IndexByte(*raw, '"') < 0 || !json.Valid(*raw) {
		return nil
	}
	var out []byte
	rest := []byte(*raw)
	for {
		start := bytes.IndexByte(rest, '"')
		if start < 0 {
			break
		}
		end := jsontree.StringEnd(rest, start)
		quoted := rest[start:end]
		if after := bytes.TrimLeft(rest[end:], " \t\r\n"); len(after) == 0 || after[0] != ':' {
			var err error
			if quoted, err = s.Quoted(kind, quoted); err != nil {
				return err
			}
		}
		out = append(append(out, rest[:start]...), quoted...)
		rest = rest[end:]
	}
	*raw = append(out, rest...)
	return nil
}

// Quoted passes a JSON string through the hook.
func (s *Store) Quoted(kind string, raw []byte) ([]byte, error) {
	text, _ := jsontree.Text(raw)
	was := text
	if err := s.Texts(kind, &text); err != nil || text == was {
		return raw, err
	}
	return jsontree.AppendString(nil, text), nil
}

// CheckValue refuses what cannot be a value under a name: it has to be JSON.
func CheckValue(name string, v json.RawMessage) error {
	if name == "" || !json.Valid(v) {
		return Invalid("the name %q needs a value that is JSON, not %q", name, v)
	}
	return nil
}

// Values is Value for each value of maps, which all have to be JSON. Changed maps are replaced, not modified.
func (s *Store) Values(kind string, all ...*map[string]json.RawMessage) error {
	for _, m := range all {
		for name, v := range *m {
			if err := CheckValue(name, v); err != nil {
				return err
			}
		}
		if s.Before == nil || *m == nil {
			continue
		}
		*m = maps.Clone(*m)
		for k, v := range *m {
			if err := s.Value(kind, &v); err != nil {
				return err
			}
			(*m)[k] = v
		}
	}
	return nil
}

// Sessions passes the digests and the enhancers' data of sessions through the hook, and returns the sessions to store.
func (s *Store) Sessions(all []branch.Session) ([]branch.Session, error) {
	if s.Before == nil {
		return all, nil
	}
	all = slices.Clone(all)
	for i := range all {
		all[i].Digests = slices.Clone(all[i].Digests)
		for j := range all[i].Digests {
			if err := s.Texts("digest", &all[i].Digests[j].Text); err != nil {
				return nil, err
			}
		}
		if err := s.Values("data", &all[i].Data); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ReadyTool passes a tool's own texts through the hook and checks the tool.
func (s *Store) ReadyTool(t *record.Tool) error {
	if err := s.Texts("tool", &t.Description); err != nil {
		return err
	}
	if err := s.Value("tool", &t.Schema); err != nil {
		return err
	}
	t.Remotes = slices.Clone(t.Remotes)
	for i := range t.Remotes {
		if err := s.Texts("tool", &t.Remotes[i].Description); err != nil {
			return err
		}
		if err := s.Value("tool", &t.Remotes[i].Schema); err != nil {
			return err
		}
	}
	if err := t.Check(); err != nil {
		return err
	}
	if s.Judge != nil { // its words say more
		if err := s.Judge.Tool(t); err != nil {
			return err
		}
	}
	return CheckSchemas(t)
}
