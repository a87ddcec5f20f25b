package chatctx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/pool"
)

// The gate before each transaction: every text that a person, a model, a tool or a file gave passes the embedder's hook here, and nowhere else. What the hook
// is not told of are names, keys, patterns and how tools are run.

// ready prepares messages for being stored: ids, times, states of calls, the embedder's hook, validity.
func (s *Store) ready(msgs []*Message) error {
	for i, m := range msgs {
		if m.ID == (ID{}) {
			m.ID = pool.NewID()
		}
		if m.Created == 0 {
			m.Created = s.now()
		}
		if err := s.message(m); err != nil {
			return err
		}
		if err := m.Validate(); err != nil {
			return fmt.Errorf("message %d: %w", i+1, err)
		}
	}
	settle(msgs)
	return nil
}

// message passes a message through the hook. Its id is not the hook's to change.
func (s *Store) message(m *Message) error {
	if s.before == nil {
		return nil
	}
	id := m.ID
	err := s.before(m)
	m.ID = id
	return err
}

// texts pass texts that are no messages through the hook.
func (s *Store) texts(kind string, texts ...*string) error {
	for _, p := range texts {
		if s.before == nil || *p == "" {
			continue
		}
		m := pool.NewText(pool.System, *p)
		m.Kind = kind
		if err := s.before(m); err != nil {
			return err
		}
		*p = m.Text()
	}
	return nil
}

// value passes the texts in a JSON value through the hook, but for the keys of its objects. All other bytes stay as they are.
func (s *Store) value(kind string, raw *json.RawMessage) error {
	if s.before == nil || bytes.IndexByte(*raw, '"') < 0 || !json.Valid(*raw) {
		return nil
	}
	var out []byte
	rest := []byte(*raw)
	for {
		start := bytes.IndexByte(rest, '"')
		if start < 0 {
			break
		}
		end := start + 1
		for ; rest[end] != '"'; end++ {
			if rest[end] == '\\' {
				end++
			}
		}
		end++
		quoted := rest[start:end]
		if after := bytes.TrimLeft(rest[end:], " \t\r\n"); len(after) == 0 || after[0] != ':' {
			var err error
			if quoted, err = s.quoted(kind, quoted); err != nil {
				return err
			}
		}
		out = append(append(out, rest[:start]...), quoted...)
		rest = rest[end:]
	}
	*raw = append(out, rest...)
	return nil
}

// quoted passes a JSON string through the hook.
func (s *Store) quoted(kind string, raw []byte) ([]byte, error) {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, err
	}
	was := text
	if err := s.texts(kind, &text); err != nil || text == was {
		return raw, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(text)
	return bytes.TrimSpace(b.Bytes()), err
}

// values is value for each value of maps, which are replaced and not changed.
func (s *Store) values(kind string, all ...*map[string]json.RawMessage) error {
	for _, m := range all {
		if s.before == nil || *m == nil {
			continue
		}
		*m = maps.Clone(*m)
		for k, v := range *m {
			if err := s.value(kind, &v); err != nil {
				return err
			}
			(*m)[k] = v
		}
	}
	return nil
}

// sessions passes the digests and the enhancers' data of sessions, and gives the sessions as they are to be stored.
func (s *Store) sessions(all []branch.Session) ([]branch.Session, error) {
	if s.before == nil {
		return all, nil
	}
	all = slices.Clone(all)
	for i := range all {
		all[i].Digests = slices.Clone(all[i].Digests)
		for j := range all[i].Digests {
			if err := s.texts("digest", &all[i].Digests[j].Text); err != nil {
				return nil, err
			}
		}
		if err := s.values("data", &all[i].Data); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ready passes what a new context begins with, and checks its title.
func (n *NewContext) ready(s *Store) error {
	if err := s.texts("title", &n.Title); err != nil {
		return err
	}
	if err := checkTitle(n.Title); err != nil {
		return err
	}
	if err := s.texts("prompt", &n.System, &n.Prompt); err != nil {
		return err
	}
	if err := s.values("setting", &n.Settings); err != nil {
		return err
	}
	return s.ready(n.Messages)
}

// ready passes what a tool says of itself, and checks it.
func (t *Tool) ready(s *Store) error {
	if err := s.texts("tool", &t.Description); err != nil {
		return err
	}
	if err := s.value("tool", &t.Schema); err != nil {
		return err
	}
	t.Remotes = slices.Clone(t.Remotes)
	for i := range t.Remotes {
		if err := s.texts("tool", &t.Remotes[i].Description); err != nil {
			return err
		}
		if err := s.value("tool", &t.Remotes[i].Schema); err != nil {
			return err
		}
	}
	return t.Check()
}

// texts is Store.texts before the batch's transaction.
func (b *Batch) texts(kind string, texts ...*string) {
	b.prepare = append(b.prepare, func() error { return b.store.texts(kind, texts...) })
}

// value is Store.value before the batch's transaction.
func (b *Batch) value(kind string, raw *json.RawMessage) {
	b.prepare = append(b.prepare, func() error { return b.store.value(kind, raw) })
}

// values is Store.values before the batch's transaction.
func (b *Batch) values(kind string, m *map[string]json.RawMessage) {
	b.prepare = append(b.prepare, func() error { return b.store.values(kind, m) })
}
