package exchange

import (
	"bytes"
	"context"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/exchangetest"
	"github.com/chatctx/chatctx/chatctx/record"
)

func memoryStore(t testing.TB) *chatctx.Store { return exchangetest.MemoryStore(t) }

func exported(t testing.TB, s *chatctx.Store, o ExportOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Export(context.Background(), s, o, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func onlyContext(t testing.TB, s *chatctx.Store) *record.ContextInfo {
	t.Helper()
	var found *record.ContextInfo
	for info, err := range s.Contexts(context.Background(), record.ListOptions{}) {
		if err != nil || found != nil {
			t.Fatal("more than one context, or", err)
		}
		found = info
	}
	return found
}
