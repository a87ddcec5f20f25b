package shelf_test

import (
	"context"
	"errors"
	"testing"

	"example.org/outside/shelf"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/kvtest"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

func TestConformance(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.DB { return shelf.New() })
}

func TestReopen(t *testing.T) {
	url := "shelf://again"
	if err := kv.Init(t.Context(), url, func(kv.RwTx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	kvtest.Reopen(t, 1, func() kv.DB {
		db, err := kv.Open(context.Background(), url, kv.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return db
	})
}

// TestStore: conversations live on a shelf as in a file.
func TestStore(t *testing.T) {
	const url = "shelf://boats"
	if _, err := chatctx.Open(url, chatctx.Options{}); !errors.Is(err, chatctx.ErrNotExist) {
		t.Errorf("nothing is there: %v", err)
	}
	for n := 1; n <= 2; n++ {
		s, err := chatctx.Open(url, chatctx.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Context(t.Context(), "Boats")
		if errors.Is(err, chatctx.ErrNotFound) {
			c, err = s.New(t.Context(), record.NewContext{Title: "Boats"})
		}
		if err != nil {
			t.Fatal(err)
		}
		done, err := c.Append(t.Context(), "", pool.NewText(pool.User, "A name?"))
		if err != nil || done.Last().Messages != n {
			t.Errorf("%+v, %v", done, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	s, err := chatctx.Open(url, chatctx.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.New(t.Context(), record.NewContext{Title: "Planes"}); !errors.Is(err, chatctx.ErrReadOnly) {
		t.Errorf("writing to a store that is open for reading: %v", err)
	}
}
