package pool_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/pool"
)

const seeds = 3000

func mustEncode(t testing.TB, m *pool.Message) []byte {
	t.Helper()
	b, err := pool.Encode(m)
	if err != nil {
		t.Fatalf("Encode: %v", err)
	}
	return b
}

func mustDecode(t testing.TB, b []byte) *pool.Message {
	t.Helper()
	m := &pool.Message{}
	if err := pool.Decode(b, m); err != nil {
		t.Fatalf("Decode: %v", err)
	}
	return m
}

func mustJSON(t testing.TB, m *pool.Message) []byte {
	t.Helper()
	b, err := m.AppendJSON(nil)
	if err != nil {
		t.Fatalf("AppendJSON: %v", err)
	}
	return b
}

func TestEveryMessageSurvives(t *testing.T) {
	for seed := range uint64(seeds) {
		m := newMaker(seed).message()
		if err := m.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		record := mustEncode(t, m)
		if again := mustEncode(t, mustDecode(t, record)); !bytes.Equal(record, again) {
			t.Fatalf("seed %d: read and written again, the record is\n%x, was\n%x", seed, again, record)
		}
		survivesJSON(t, m)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// survivesJSON is the law of the JSON: it gives the same record and the same JSON again, also with white space around, and
// from json.Marshal's escapes.
func survivesJSON(t testing.TB, m *pool.Message) {
	t.Helper()
	record, text := mustEncode(t, m), mustJSON(t, m)
	var indented, escaped bytes.Buffer
	if err := json.Indent(&indented, text, "", "\t"); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if bytes.ContainsRune(text, '\n') {
		t.Errorf("more than one line: %s", text)
	}
	json.HTMLEscape(&escaped, text)
	for what, input := range map[string][]byte{"as it is": text, "by json.Marshal": escaped.Bytes(), "indented": indented.Bytes()} {
		var got pool.Message
		if err := json.Unmarshal(input, &got); err != nil {
			t.Errorf("%s: %v in\n%s", what, err, input)
			return
		}
		got.Home = m.Home
		if again := mustJSON(t, &got); !bytes.Equal(text, again) && what == "as it is" {
			t.Errorf("%s: the JSON is\n%s, was\n%s", what, again, text)
		}
		if again := mustEncode(t, &got); !bytes.Equal(record, again) && what == "as it is" {
			t.Errorf("%s: the record is\n%x, was\n%x\nfrom %s", what, again, record, text)
		}
	}
}

// What is stored, read, exported as JSON, imported into an empty store and read there is the same record.
func TestStoreToStore(t *testing.T) {
	big := bytes.Repeat([]byte("long "), 4000)
	for seed := range uint64(500) {
		from, to := memkv.New(), memkv.New()
		ctx, m := pool.NewID(), newMaker(seed).message()
		if m.Result != nil {
			m.Result.SHA256 = pool.Hash{}
			m.Result.Text = string(big)
		}
		var record []byte
		update(t, from, func(tx kv.RwTx) error {
			putReferred(t, tx, m)
			if err := pool.Put(tx, ctx, m); err != nil {
				return err
			}
			b, err := tx.Get(pool.Bucket, append(ctx[:], m.ID[:]...))
			record = bytes.Clone(b)
			return err
		})
		var text []byte
		view(t, from, func(tx kv.Tx) error {
			got, err := pool.Get(tx, ctx, m.ID)
			if err == nil {
				text = mustJSON(t, got)
			}
			return err
		})
		var imported pool.Message
		if err := json.Unmarshal(text, &imported); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		update(t, to, func(tx kv.RwTx) error {
			putReferred(t, tx, m)
			if err := pool.Put(tx, ctx, &imported); err != nil {
				return err
			}
			b, err := tx.Get(pool.Bucket, append(ctx[:], m.ID[:]...))
			if !bytes.Equal(b, record) {
				t.Fatalf("seed %d: another record", seed)
			}
			return err
		})
	}
}

// putReferred writes headers for the artifacts that m refers to, so that Put finds them.
func putReferred(t *testing.T, tx kv.RwTx, m *pool.Message) {
	t.Helper()
	for _, h := range pool.Artifacts(m) {
		if err := tx.Put(pool.ArtifactBucket, h[:], []byte("there")); err != nil {
			t.Fatal(err)
		}
	}
}

// sealed puts a right checksum behind a body.
func sealed(body []byte) []byte {
	return binary.BigEndian.AppendUint32(bytes.Clone(body), crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

func FuzzDecode(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) {
		var m pool.Message
		if err := pool.Decode(sealed(body), &m); err != nil {
			if !errors.Is(err, kv.ErrDamaged) {
				t.Fatalf("Decode: %v", err)
			}
			return
		}
		record, err := pool.Encode(&m)
		if err != nil {
			return // more than a message may have, such as raw JSON that is not UTF-8
		}
		again := mustDecode(t, record)
		if second := mustEncode(t, again); !bytes.Equal(record, second) {
			t.Fatalf("another record:\n%x, was\n%x", second, record)
		}
		if m.Validate() == nil {
			survivesJSON(t, again)
		}
	})
}

func FuzzJSON(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		var m pool.Message
		if err := m.UnmarshalJSON(data); err != nil {
			if !errors.Is(err, pool.ErrInvalid) {
				t.Fatalf("UnmarshalJSON: %v", err)
			}
			return
		}
		if m.Validate() != nil {
			return
		}
		survivesJSON(t, &m)
	})
}
