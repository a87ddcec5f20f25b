package pool_test

import (
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// benchMessage is an ordinary reply with 1 KB of text.
func benchMessage() *pool.Message {
	m := pool.NewText(pool.Assistant, strings.Repeat("word ", 205))
	m.ID, m.Created = pool.NewID(), pool.Now()
	m.Meta = pool.Metadata{Model: "model-1", Provider: "provider", InputTokens: ptr(int64(1000)), OutputTokens: ptr(int64(250)),
		FinishReason: "stop", Completed: pool.Now()}
	return m
}

func BenchmarkEncode(b *testing.B) {
	m := benchMessage()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := poolstore.Encode(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeBare(b *testing.B) {
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		b.Fatal(err)
	}
	m := benchMessage()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := mode.Marshal(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	record := mustEncode(b, benchMessage())
	b.ReportAllocs()
	for b.Loop() {
		var m pool.Message
		if err := poolstore.Decode(record, &m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeBare(b *testing.B) {
	record := mustEncode(b, benchMessage())
	b.ReportAllocs()
	for b.Loop() {
		var m pool.Message
		if err := cbor.Unmarshal(record[:len(record)-4], &m); err != nil {
			b.Fatal(err)
		}
	}
}

func benchPool(b *testing.B) (db kv.DB, ctx pool.ID, ids []pool.ID) {
	db, ctx = memkv.New(), pool.NewID()
	b.Cleanup(func() { db.Close() })
	for range 10_000 {
		ids = append(ids, pool.NewID())
	}
	update(b, db, func(tx kv.RwTx) error {
		for _, id := range ids {
			m := benchMessage()
			m.ID = id
			if err := poolstore.Put(tx, ctx, m); err != nil {
				return err
			}
		}
		return nil
	})
	return db, ctx, ids
}

// BenchmarkLoad reads 10,000 messages.
func BenchmarkLoad(b *testing.B) {
	db, ctx, ids := benchPool(b)
	for b.Loop() {
		view(b, db, func(tx kv.Tx) error {
			return poolstore.GetMany(tx, ctx, ids, func(int, *pool.Message) error { return nil })
		})
	}
}

// BenchmarkLoadBare reads and decodes the same records with nothing around them.
func BenchmarkLoadBare(b *testing.B) {
	db, ctx, ids := benchPool(b)
	for b.Loop() {
		view(b, db, func(tx kv.Tx) error {
			for i := range ids {
				record, err := tx.Get(poolstore.Bucket, append(ctx[:], ids[i][:]...))
				if err != nil {
					return err
				}
				if err := cbor.Unmarshal(record[:len(record)-4], &pool.Message{}); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	m := benchMessage()
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		var err error
		if buf, err = m.AppendJSON(buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnmarshalJSON(b *testing.B) {
	text := mustJSON(b, benchMessage())
	b.ReportAllocs()
	for b.Loop() {
		var m pool.Message
		if err := m.UnmarshalJSON(text); err != nil {
			b.Fatal(err)
		}
	}
}
