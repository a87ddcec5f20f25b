package poolstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// Bucket has the messages. Its keys are a context's id and a message's id, 16 bytes each.
const Bucket = "pool"

// inlineLimit is the largest text or JSON of a tool result, and the largest value that is kept as it came, in bytes, that stays in its message's record.
const inlineLimit = 8 << 10

func key(ctx, id pool.ID) []byte { return append(ctx[:len(ctx):len(ctx)], id[:]...) }

// Put stores m in a context and overwrites a message with its id. The bytes of its images and documents, and a tool result's text or JSON and
// what is kept as it came over 8 KiB, become artifacts, whose hashes and sizes Put computes. It does not change m. It returns ErrInvalid if a part refers to
// an artifact that the store does not have, and kv.ErrTooLarge for a message that the engine cannot hold. It does not call Validate.
func Put(tx kv.RwTx, ctx pool.ID, m *pool.Message) error {
	rec, err := putAside(tx, m)
	if err != nil {
		return err
	}
	b, err := Encode(rec)
	if err != nil {
		return err
	}
	err = tx.Put(Bucket, key(ctx, m.ID), b)
	if errors.Is(err, kv.ErrTooLarge) {
		return stored.NewTooLarge(fmt.Errorf("a message of %d MB is larger than the store can hold: give what makes it large as a document", len(b)>>20))
	}
	if err != nil {
		return fmt.Errorf("storing message %s: %w", m.ID, err)
	}
	return nil
}

// putAside stores m's large contents and returns the message as its record will have it.
func putAside(tx kv.RwTx, m *pool.Message) (*pool.Message, error) {
	k := keeper{tx: tx}
	rec := *m
	k.Enter("content")
	rec.Content = k.parts(m.Content, false)
	k.Leave(0)
	if m.Result != nil {
		k.Enter("tool_result")
		r := *m.Result
		k.result(&r)
		k.Enter("parts")
		r.Parts = k.parts(m.Result.Parts, true)
		rec.Result = &r
	}
	k.Path = k.Path[:0]
	k.aside(&rec)
	return &rec, k.err
}

// keeper puts contents into artifacts. It keeps the first error.
type keeper struct {
	stored.Cursor
	tx  kv.RwTx
	err error
}

func (k *keeper) put(data []byte, mediaType string) (pool.Hash, int64) {
	if k.err != nil {
		return pool.Hash{}, 0
	}
	var h pool.Hash
	h, k.err = PutArtifact(k.tx, data, mediaType)
	return h, int64(len(data))
}

// has checks that an artifact exists to which a part refers.
func (k *keeper) has(h pool.Hash) {
	if k.err != nil || h == (pool.Hash{}) {
		return
	}
	var there bool
	if there, k.err = HasArtifact(k.tx, h); k.err == nil && !there {
		k.err = k.Invalid("the store has no artifact %s; give its data", h)
	}
}

// parts returns the parts as they are stored: the same list, or a copy if one of them changes.
func (k *keeper) parts(parts []pool.Part, ofResult bool) []pool.Part {
	copied := false
	for i := range parts {
		back := k.EnterIndex(i)
		p := parts[i]
		switch {
		case p.Data != nil:
			p.SHA256, p.Size = k.put(p.Data, p.MediaType)
		case p.Type == pool.TextPart && ofResult && len(p.Text) > inlineLimit:
			p.SHA256, p.Size = k.put([]byte(p.Text), "text/plain")
			p.Text = ""
		case p.Type == pool.TextPart && p.Text != "":
			p.SHA256, p.Size = pool.Hash{}, 0
		default:
			k.has(p.SHA256)
		}
		if p.SHA256 != parts[i].SHA256 || p.Size != parts[i].Size || len(p.Text) != len(parts[i].Text) {
			if !copied {
				parts, copied = append([]pool.Part(nil), parts...), true
			}
			parts[i] = p
		}
		k.Leave(back)
	}
	return parts
}

func (k *keeper) result(r *pool.Result) {
	switch {
	case len(r.JSON) > inlineLimit:
		r.MediaType = "application/json"
		r.SHA256, r.Size = k.put(r.JSON, r.MediaType)
		r.JSON = nil
	case len(r.Text) > inlineLimit:
		r.MediaType = "text/plain"
		r.SHA256, r.Size = k.put([]byte(r.Text), r.MediaType)
		r.Text = ""
	case r.Text != "" || r.JSON != nil:
		r.SHA256, r.Size, r.MediaType = pool.Hash{}, 0, ""
	default:
		k.has(r.SHA256)
	}
}

// putBack restores what putAside stored as artifacts. The bytes of images and documents stay there.
func putBack(tx kv.Tx, m *pool.Message) error {
	if err := putBackAside(tx, m); err != nil {
		return err
	}
	r := m.Result
	if r == nil {
		return nil
	}
	if r.SHA256 != (pool.Hash{}) {
		data, _, err := Artifact(tx, r.SHA256)
		if err != nil {
			return fmt.Errorf("message %s: %w", m.ID, err)
		}
		if r.MediaType == "application/json" {
			r.JSON = json.RawMessage(data)
		} else {
			r.Text = string(data)
		}
	}
	for i := range r.Parts {
		if p := &r.Parts[i]; p.Type == pool.TextPart && p.SHA256 != (pool.Hash{}) {
			data, _, err := Artifact(tx, p.SHA256)
			if err != nil {
				return fmt.Errorf("message %s: %w", m.ID, err)
			}
			p.Text = string(data)
		}
	}
	return nil
}

// textKeys names the artifacts that putBack reads, except large ones.
func textKeys(m *pool.Message) (keys []kv.Key) {
	add := func(h pool.Hash, size int64) {
		if h == (pool.Hash{}) || size < 0 || size > mostFetched {
			return
		}
		keys = append(keys, kv.Key{Bucket: ArtifactBucket, Key: h[:]})
		for n := range uint32((size + chunkSize - 1) / chunkSize) {
			keys = append(keys, kv.Key{Bucket: ArtifactBucket, Key: chunkKey(h, n)})
		}
	}
	for _, a := range m.Aside {
		add(a.SHA256, a.Size)
	}
	if r := m.Result; r != nil {
		add(r.SHA256, r.Size)
		for i := range r.Parts {
			if p := &r.Parts[i]; p.Type == pool.TextPart {
				add(p.SHA256, p.Size)
			}
		}
	}
	return keys
}

// mostFetched is the largest text that is read together with others.
const mostFetched = 1 << 20

// Get reads a message; nil if the context has none with that id.
func Get(tx kv.Tx, ctx, id pool.ID) (*pool.Message, error) {
	b, err := tx.Get(Bucket, key(ctx, id))
	if b == nil || err != nil {
		return nil, err
	}
	return Load(tx, id, b)
}

// Load reads a message from its stored bytes, and its texts that are artifacts.
func Load(tx kv.Tx, id pool.ID, b []byte) (*pool.Message, error) {
	m := &pool.Message{ID: id}
	if err := Decode(b, m); err != nil {
		return nil, err
	}
	if err := putBack(tx, m); err != nil {
		return nil, err
	}
	return m, nil
}

// GetMany reads messages in the order of ids and calls fn for each, with nil for a missing one. An error from reading or from fn ends it and is returned;
// kv.ErrStop ends it without an error.
func GetMany(tx kv.Tx, ctx pool.ID, ids []pool.ID, fn func(i int, m *pool.Message) error) error {
	return GetManyWith(tx, ctx, ids, nil, fn)
}

// How many messages are in memory at once while their contents are read: so many, of so many bytes and one more.
const (
	manyAtOnce  = 256
	bytesAtOnce = 4 << 20
)

// GetManyWith is like GetMany and also fetches what fn reads for a message: also returns the keys.
func GetManyWith(tx kv.Tx, ctx pool.ID, ids []pool.ID, also func(*pool.Message) []kv.Key, fn func(i int, m *pool.Message) error) error {
	for from := 0; from < len(ids); {
		page := ids[from:min(from+manyAtOnce, len(ids))]
		msgs, errs := make([]*pool.Message, len(page)), make([]error, len(page))
		var keys []kv.Key
		size, read := 0, len(page)
		err := tx.GetMany(Bucket, keysOf(ctx, page), func(i int, value []byte) error {
			if size > bytesAtOnce {
				read = i
				return kv.ErrStop
			}
			if size += len(value); value == nil {
				return nil
			}
			msgs[i] = &pool.Message{ID: page[i]}
			if errs[i] = Decode(value, msgs[i]); errs[i] != nil {
				return kv.ErrStop
			}
			keys = append(keys, textKeys(msgs[i])...)
			if also != nil {
				keys = append(keys, also(msgs[i])...)
			}
			return nil
		})
		if err == nil {
			err = kv.Fetch(tx, keys...)
		}
		for i, m := range msgs[:read] {
			if err == nil {
				err = errs[i]
			}
			if err == nil && m != nil {
				err = putBack(tx, m)
			}
			if err == nil {
				err = fn(from+i, m)
			}
			if errors.Is(err, kv.ErrStop) {
				return nil
			}
			if err != nil {
				return err
			}
		}
		from += read
	}
	return nil
}

// MessageKeys names messages, for kv.Fetch.
func MessageKeys(ctx pool.ID, ids []pool.ID) []kv.Key {
	keys := make([]kv.Key, len(ids))
	for i, key := range keysOf(ctx, ids) {
		keys[i] = kv.Key{Bucket: Bucket, Key: key}
	}
	return keys
}

// Head has the fields that distinguish kinds of messages.
type Head struct {
	Role   pool.Role `cbor:"2,keyasint"`
	Kind   string    `cbor:"8,keyasint"`
	Hidden bool      `cbor:"9,keyasint"`
	Unsent bool      `cbor:"10,keyasint"`
}

// Heads is like GetMany for the heads alone, which costs less than reading the messages. It skips missing messages.
func Heads(tx kv.Tx, ctx pool.ID, ids []pool.ID, fn func(i int, h Head) error) error {
	return tx.GetMany(Bucket, keysOf(ctx, ids), func(i int, value []byte) error {
		if value == nil {
			return nil
		}
		body, err := stored.Unseal(value)
		if err != nil {
			return damaged(ids[i], err)
		}
		var h Head
		if err := stored.UnmarshalSome(body, &h); err != nil {
			return damaged(ids[i], err)
		}
		return fn(i, h)
	})
}

// putAway has the sizes of what is stored as artifacts and comes back with the message.
type putAway struct {
	Aside  map[string]pool.Aside `cbor:"16,keyasint"`
	Result *struct {
		Size  int64 `cbor:"9,keyasint"`
		Parts []struct {
			Size int64 `cbor:"7,keyasint"`
		} `cbor:"4,keyasint"`
	} `cbor:"5,keyasint"`
}

// Sizes is like GetMany for about how many bytes of memory the messages take, without reading them. Messages that are missing or cannot be read count 0.
func Sizes(tx kv.Tx, ctx pool.ID, ids []pool.ID, fn func(i, size int) error) error {
	return tx.GetMany(Bucket, keysOf(ctx, ids), func(i int, value []byte) error {
		size := len(value)
		var away putAway
		if stored.UnmarshalSome(stored.Unchecked(value), &away) == nil {
			for _, a := range away.Aside {
				size += int(a.Size)
			}
			if away.Result != nil {
				size += int(away.Result.Size)
				for _, p := range away.Result.Parts {
					size += int(p.Size)
				}
			}
		}
		return fn(i, size)
	})
}

// keysOf returns the keys of messages, in one allocation.
func keysOf(ctx pool.ID, ids []pool.ID) [][]byte {
	const size = 2 * len(ctx)
	all := make([]byte, 0, size*len(ids))
	keys := make([][]byte, len(ids))
	for i := range ids {
		all = append(append(all, ctx[:]...), ids[i][:]...)
		keys[i] = all[i*size:]
	}
	return keys
}

// HomeOf reads a message's home without reading the message; nil if the context has none with that id.
func HomeOf(tx kv.Tx, ctx, id pool.ID) (*pool.Home, error) {
	b, err := tx.Get(Bucket, key(ctx, id))
	if b == nil || err != nil {
		return nil, err
	}
	body, err := stored.Unseal(b)
	if err != nil {
		return nil, damaged(id, err)
	}
	var m struct {
		Home pool.Home `cbor:"15,keyasint"`
	}
	if err := stored.UnmarshalSome(body, &m); err != nil {
		return nil, damaged(id, err)
	}
	return &m.Home, nil
}

// Has reports whether the context has a message with that id. It does not read the message.
func Has(tx kv.Tx, ctx, id pool.ID) (bool, error) {
	b, err := tx.Get(Bucket, key(ctx, id))
	return b != nil, err
}

// Scan calls fn for each message of a context, in the order of ids. For a message that cannot be read fn gets nil with the id and an err, and the scan goes
// on. An error of fn ends the scan; kv.ErrStop ends it without an error.
func Scan(tx kv.Tx, ctx pool.ID, fn func(id pool.ID, m *pool.Message, err error) error) error {
	return ScanAfter(tx, ctx, pool.ID{}, fn)
}

// ScanAfter is Scan from the first id after the given one, to read a large context in several transactions.
func ScanAfter(tx kv.Tx, ctx, after pool.ID, fn func(id pool.ID, m *pool.Message, err error) error) error {
	return scanAfter(tx, ctx, after, fn, func(id pool.ID, value []byte) (*pool.Message, error) { return Load(tx, id, value) })
}

// scanAfter calls fn with the result of read for each message's record.
func scanAfter[T any](tx kv.Tx, ctx, after pool.ID, fn func(pool.ID, *T, error) error, read func(pool.ID, []byte) (*T, error)) error {
	r := kv.Prefix(ctx[:])
	if after != (pool.ID{}) {
		r.From = append(key(ctx, after), 0)
	}
	return tx.Scan(Bucket, r, func(k, value []byte) error {
		if len(k) != 2*len(pool.ID{}) {
			return fn(pool.ID{}, nil, fmt.Errorf("%w: a message's key has %d bytes", kv.ErrDamaged, len(k)))
		}
		id := pool.ID(bytes.Clone(k[len(pool.ID{}):]))
		v, err := read(id, value)
		return fn(id, v, err)
	})
}

// ScanFacts is like ScanAfter for the facts alone, which costs less than reading the messages. What was put aside is missing in them. For a message that cannot
// be read fn gets nil with its error.
func ScanFacts(tx kv.Tx, ctx, after pool.ID, fn func(id pool.ID, f *pool.Facts, err error) error) error {
	return scanAfter(tx, ctx, after, fn, func(id pool.ID, value []byte) (*pool.Facts, error) {
		f := &pool.Facts{ID: id}
		body, err := stored.Unseal(value)
		if err == nil {
			err = stored.UnmarshalSome(body, f)
		}
		if err != nil {
			return nil, damaged(id, err)
		}
		return f, nil
	})
}
