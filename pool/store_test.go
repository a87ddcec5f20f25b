package pool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/pool"
)

// update runs fn in a transaction on db and fails the test with its error.
func update(t testing.TB, db kv.DB, fn func(tx kv.RwTx) error) {
	t.Helper()
	if err := db.Update(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

func view(t testing.TB, db kv.DB, fn func(tx kv.Tx) error) {
	t.Helper()
	if err := db.View(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

func TestLargeContents(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 40_000) // 640,000 bytes: three chunks
	bigJSON := json.RawMessage(`{"a":"` + big + `"}`)
	image := append([]byte("\x89PNG\r\n\x1a\n"), big...)
	tests := map[string]*pool.Message{
		"small text": {Role: pool.ToolRole, Result: &pool.Result{RequestID: "c", Text: "small"}},
		"text":       {Role: pool.ToolRole, Result: &pool.Result{RequestID: "c", Text: big}},
		"JSON":       {Role: pool.ToolRole, Result: &pool.Result{RequestID: "c", JSON: bigJSON}},
		"text and JSON": {Role: pool.ToolRole, Result: &pool.Result{RequestID: "c", JSON: bigJSON,
			Text: big}},
		"text part": {Role: pool.ToolRole, Result: &pool.Result{RequestID: "c", Parts: []pool.Part{
			{Type: pool.TextPart, Text: "short"}, {Type: pool.TextPart, Text: big}}}},
		"image":        {Role: pool.User, Content: []pool.Part{{Type: pool.ImagePart, Data: image, MediaType: "image/png"}}},
		"result image": {Role: pool.ToolRole, Result: &pool.Result{Parts: []pool.Part{{Type: pool.ImagePart, Data: image}}}},
		"long text":    pool.NewText(pool.User, strings.Repeat("a", 20<<20)),
	}
	for name, m := range tests {
		t.Run(name, func(t *testing.T) {
			db := memkv.New()
			defer db.Close()
			ctx := pool.NewID()
			m.ID = pool.NewID()
			before, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			update(t, db, func(tx kv.RwTx) error { return pool.Put(tx, ctx, m) })
			if after, _ := json.Marshal(m); !bytes.Equal(before, after) {
				t.Error("Put changed the message")
			}
			view(t, db, func(tx kv.Tx) error {
				got, err := pool.Get(tx, ctx, m.ID)
				if err != nil {
					return err
				}
				sameContents(t, tx, m, got)
				return nil
			})
		})
	}
}

// sameContents compares what was stored with what is read: texts are put back, bytes are in the artifact named.
func sameContents(t *testing.T, tx kv.Tx, want, got *pool.Message) {
	t.Helper()
	if got.Text() != want.Text() {
		t.Error("another text")
	}
	sameParts(t, tx, want.Content, got.Content)
	if want.Result == nil {
		return
	}
	if got.Result.Text != want.Result.Text || !bytes.Equal(got.Result.JSON, want.Result.JSON) {
		t.Error("another result")
	}
	sameParts(t, tx, want.Result.Parts, got.Result.Parts)
}

func sameParts(t *testing.T, tx kv.Tx, want, got []pool.Part) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%d parts, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i].Text != want[i].Text {
			t.Errorf("part %d: another text", i)
		}
		if want[i].Data == nil {
			continue
		}
		data, mediaType, err := pool.Artifact(tx, got[i].SHA256)
		if err != nil || !bytes.Equal(data, want[i].Data) || mediaType != "image/png" || got[i].Size != int64(len(data)) {
			t.Errorf("part %d: %d bytes of %s, %v", i, len(data), mediaType, err)
		}
	}
}

func TestMissing(t *testing.T) {
	db := memkv.New()
	defer db.Close()
	ctx, id := pool.NewID(), pool.NewID()
	update(t, db, func(tx kv.RwTx) error {
		if m, err := pool.Get(tx, ctx, id); m != nil || err != nil {
			t.Errorf("Get: %v, %v", m, err)
		}
		if err := pool.SetCompactSummary(tx, ctx, id, "x"); !errors.Is(err, pool.ErrNoMessage) {
			t.Errorf("SetCompactSummary: %v", err)
		}
		if err := pool.Put(tx, ctx, &pool.Message{ID: id, Role: pool.User,
			Content: []pool.Part{{Type: pool.ImagePart, SHA256: pool.Hash{1}}}}); !errors.Is(err, pool.ErrInvalid) {
			t.Errorf("Put of a part without its artifact: %v", err)
		}
		if _, _, err := pool.Artifact(tx, pool.Hash{1}); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("Artifact: %v", err)
		}
		return pool.Delete(tx, ctx, id)
	})
}
