package care

import (
	"errors"
	"fmt"
	"maps"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

func findArtifacts(in *inspection) error {
	return poolstore.ScanArtifacts(in.tx, pool.Hash{}, func(a pool.ArtifactInfo, err error) error {
		if err == nil && in.full {
			_, _, err = poolstore.Artifact(in.tx, a.SHA256)
		}
		if errors.Is(err, kv.ErrDamaged) {
			in.fault(6, "artifact "+a.SHA256.String(), "%v", err).key = a.SHA256[:]
			return nil
		}
		return err
	})
}

// mendArtifacts restores the headers of artifacts whose bytes are right, and removes other damaged artifacts and records whose keys are no artifact's.
func mendArtifacts(in *inspection, found []fault) error {
	for _, f := range found {
		if err := in.mendArtifact(pool.Hash(f.key)); err != nil {
			return err
		}
	}
	in.faults = nil
	err := in.tx.Scan(poolstore.ArtifactBucket, kv.Range{}, func(key, _ []byte) error {
		if len(key) != 32 && len(key) != 36 {
			in.fault(6, fmt.Sprintf("artifact %x", key), "is not an artifact").causedBy(poolstore.ArtifactBucket, key)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return removeFound(in, in.faults)
}

func (in *inspection) mendArtifact(h pool.Hash) error {
	var data []byte
	err := in.tx.Scan(poolstore.ArtifactBucket, kv.Prefix(h[:]), func(key, value []byte) error {
		if len(key) == 36 {
			data = append(data, value...)
		}
		return nil
	})
	if err == nil {
		err = poolstore.DeleteArtifact(in.rw, h)
	}
	if err != nil {
		return err
	}
	if pool.HashOf(data) != h {
		in.say(6, "artifact "+h.String(), "its bytes are not the ones that were stored: it is removed")
		return nil
	}
	in.say(6, "artifact "+h.String(), "gets the header that it lacks")
	_, err = poolstore.PutArtifact(in.rw, data, "")
	return err
}

// findMessages reads the messages.
func findMessages(c *conversation) error {
	c.messages, c.lacking = map[pool.ID]*pool.Message{}, nil
	return c.tx.Scan(poolstore.Bucket, kv.Prefix(c.id[:]), func(key, value []byte) error {
		if len(key) != 2*len(pool.ID{}) {
			c.fault(1, c.where, "has a message with a key of %d bytes", len(key)).causedBy(poolstore.Bucket, key)
			return nil
		}
		id := pool.ID(key[len(pool.ID{}):])
		m := &pool.Message{ID: id}
		if err := poolstore.Decode(value, m); err != nil {
			c.messages[id] = nil
			c.fault(1, "message "+id.String(), "%v", err).causedBy(poolstore.Bucket, key)
			return nil
		}
		c.messages[id] = known(m)
		if artifacts := poolstore.Artifacts(m); len(artifacts) > 0 {
			return c.readContents(m, artifacts, value)
		}
		return nil
	})
}

func mendMessages(c *conversation, found []fault) error {
	maps.DeleteFunc(c.messages, func(_ pool.ID, m *pool.Message) bool { return m == nil })
	return removeFound(c.inspection, found)
}

// known keeps the parts of a message that the invariants need.
func known(m *pool.Message) *pool.Message {
	k := &pool.Message{ID: m.ID, Role: m.Role, Kind: m.Kind, Hidden: m.Hidden, Unsent: m.Unsent, Home: m.Home, Content: make([]pool.Part, min(len(m.Content), 1))}
	for i := range m.Calls {
		call := &m.Calls[i]
		k.Calls = append(k.Calls, pool.Call{ID: call.ID, Tool: call.Tool, Status: call.Status, Execution: call.Execution})
	}
	return k
}

// lacking is a message that lacks contents.
type lacking struct {
	*pool.Message
	why error // from reading its texts
}

// readContents looks whether the artifacts of a message are there, and reads its texts.
func (c *conversation) readContents(m *pool.Message, artifacts []pool.Hash, value []byte) error {
	all := true
	for _, h := range artifacts {
		if _, known := c.there[h]; !known {
			has, err := poolstore.HasArtifact(c.tx, h)
			if err != nil {
				return err
			}
			c.there[h] = has
		}
		all = all && c.there[h]
	}
	_, err := poolstore.Load(c.tx, m.ID, value)
	if err != nil && !errors.Is(err, kv.ErrDamaged) {
		return err
	}
	if !all || err != nil {
		c.lacking = append(c.lacking, lacking{m, err})
	}
	return nil
}

// findTwins finds messages that stand in another conversation too.
func findTwins(c *conversation) error {
	for id, m := range c.messages {
		if m == nil {
			continue
		}
		if other, ok := c.homes[id]; ok && other != c.id {
			c.fault(4, "message "+id.String(), "is in the conversations %s and %s", other, c.id)
		}
		c.homes[id] = c.id
	}
	return nil
}

// findContents reports each artifact that messages lack. A check does so once.
func findContents(c *conversation) error {
	for _, m := range c.lacking {
		all := true
		for _, h := range poolstore.Artifacts(m.Message) {
			if c.there[h] {
				continue
			}
			if all = false; c.rw != nil || !c.missing[h] {
				c.fault(6, "artifact "+h.String(), "is not there")
			}
			c.missing[h] = true
		}
		if all {
			c.fault(6, "message "+m.ID.String(), "%v", m.why)
		}
	}
	return nil
}

// mendContents puts a text in the place of what is lost.
func mendContents(c *conversation, _ []fault) error {
	for _, m := range c.lacking {
		if !c.lose(m.Message) {
			continue
		}
		c.say(6, "message "+m.ID.String(), "a content of it is lost: a word stands in its place")
		raw, err := poolstore.Encode(m.Message)
		if err == nil {
			err = c.rw.Put(poolstore.Bucket, base.Under(c.id, m.ID[:]...), raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lose puts a text in the place of missing artifacts. It reports whether it did.
func (c *conversation) lose(m *pool.Message) (any bool) {
	lost := func(h pool.Hash) string {
		if h == (pool.Hash{}) || c.there[h] {
			return ""
		}
		any = true
		return fmt.Sprintf("(lost: the contents %s)", h)
	}
	parts := func(parts []pool.Part) {
		for i := range parts {
			if text := lost(parts[i].SHA256); text != "" {
				parts[i] = pool.Part{Type: pool.TextPart, Text: text}
			}
		}
	}
	for _, a := range maps.Clone(m.Aside) {
		if text := lost(a.SHA256); text != "" {
			poolstore.Lose(m, a.SHA256, text)
		}
	}
	parts(m.Content)
	if r := m.Result; r != nil {
		if text := lost(r.SHA256); text != "" {
			r.SHA256, r.Size, r.MediaType, r.JSON, r.Text = pool.Hash{}, 0, "", nil, text
		}
		parts(r.Parts)
	}
	return any
}

// findCount finds a wrong count of messages.
func findCount(c *conversation) error {
	if n := counted(c.messages); n != int(c.rec.Messages) {
		c.fault(1, c.where, "counts %s, the pool has %d", plural.Count(int(c.rec.Messages), "message"), n)
	}
	return nil
}

func mendCount(c *conversation, _ []fault) error {
	n := counted(c.messages)
	c.say(1, c.where, "has %s, and counted %d", plural.Count(n, "message"), c.rec.Messages)
	c.rec.Messages = uint64(n)
	return nil
}

// counted returns how many messages of a pool count as the conversation's: all but receipts. One that cannot be read counts.
func counted(messages map[pool.ID]*pool.Message) int {
	n := len(messages)
	for _, m := range messages {
		if m != nil && !poolstore.Counts(m) {
			n--
		}
	}
	return n
}
