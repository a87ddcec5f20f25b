package pool_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// keeping returns a message with something in each place that can keep a value.
func keeping(id pool.ID, value func(place string) string) *pool.Message {
	raw := func(place string) json.RawMessage { return json.RawMessage(value(place)) }
	return &pool.Message{
		ID: id, Role: pool.Assistant,
		Content: []pool.Part{{Type: pool.TextPart, Text: "hi"}, {Type: "video", Raw: raw("/content/1/native")}},
		Calls:   []pool.Call{{ID: "c", Tool: "t", Raw: raw("/tool_calls/0/native")}},
		Result:  &pool.Result{RequestID: "c", Parts: []pool.Part{{Type: pool.ThinkingPart, Text: "hm", Raw: raw("/tool_result/parts/0/native")}}},
		Meta:    pool.Metadata{ProviderData: map[string]json.RawMessage{"a/b": raw("/metadata/provider_data/a~1b"), "small": json.RawMessage(`1`)}},
		Source:  &pool.Source{Format: "f", Raw: []byte(value("/source/raw") + "\xff")},
	}
}

// TestKeptValuesAreArtifacts: over 8 KiB each is an artifact, once for all messages that have it, and who reads the message gets it back.
func TestKeptValuesAreArtifacts(t *testing.T) {
	db := memkv.New()
	defer db.Close()
	ctx := pool.NewID()
	long := func(place string) string {
		return `{"type":"video","at":"` + place + strings.Repeat(" long", 2000) + `"}`
	}
	places := []string{"/content/1/native", "/metadata/provider_data/a~1b", "/source/raw", "/tool_calls/0/native", "/tool_result/parts/0/native"}
	first := keeping(pool.NewID(), long)
	before := mustJSON(t, first)
	twin := keeping(pool.NewID(), long)
	update(t, db, func(tx kv.RwTx) error {
		if err := poolstore.Put(tx, ctx, first); err != nil {
			return err
		}
		return poolstore.Put(tx, ctx, twin)
	})
	if after := mustJSON(t, first); string(after) != string(before) || first.Aside != nil {
		t.Error("Put changed the message")
	}
	view(t, db, func(tx kv.Tx) error {
		n := 0
		if err := poolstore.ScanArtifacts(tx, pool.Hash{}, func(pool.ArtifactInfo, error) error { n++; return nil }); err != nil || n != len(places) {
			t.Errorf("%d artifacts, want %d: %v", n, len(places), err)
		}
		got, err := poolstore.Get(tx, ctx, first.ID)
		if err != nil {
			return err
		}
		if again := mustJSON(t, got); string(again) != string(before) {
			t.Errorf("read\n%.300s\nwas\n%.300s", again, before)
		}
		for i, h := range poolstore.Artifacts(got) {
			if got.Aside[places[i]].SHA256 != h {
				t.Errorf("%s is not the artifact %s", places[i], h)
			}
		}
		record, err := tx.Get(poolstore.Bucket, append(ctx[:], first.ID[:]...))
		if len(record) > 1000 {
			t.Errorf("the record has %d bytes", len(record))
		}
		return err
	})
	update(t, db, func(tx kv.RwTx) error { // what is short again comes back into the record, what is lost is an error
		got, err := poolstore.Get(tx, ctx, first.ID)
		if err != nil {
			return err
		}
		got.Content[1].Raw = json.RawMessage(`{"type":"video"}`)
		if err := poolstore.Put(tx, ctx, got); err != nil {
			return err
		}
		short, err := poolstore.Get(tx, ctx, first.ID)
		if err == nil && (string(short.Content[1].Raw) != `{"type":"video"}` || len(short.Aside) != len(places)-1) {
			t.Errorf("%s with %d artifacts", short.Content[1].Raw, len(short.Aside))
		}
		return err
	})
	update(t, db, func(tx kv.RwTx) error {
		lost := pool.HashOf([]byte(long(places[3])))
		if err := poolstore.DeleteArtifact(tx, lost); err != nil {
			return err
		}
		if _, err := poolstore.Get(tx, ctx, twin.ID); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("without one of its artifacts: %v", err)
		}
		raw, err := tx.Get(poolstore.Bucket, append(ctx[:], twin.ID[:]...))
		if err != nil {
			return err
		}
		m := &pool.Message{}
		if err := poolstore.Decode(raw, m); err != nil {
			return err
		}
		if poolstore.Lose(m, lost, "(lost)"); string(m.Calls[0].Raw) != `"(lost)"` || len(m.Aside) != len(places)-1 {
			t.Errorf("after the loss: %s, %d artifacts", m.Calls[0].Raw, len(m.Aside))
		}
		return nil
	})
}
