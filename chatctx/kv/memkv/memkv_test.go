package memkv_test

import (
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/kvtest"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
)

func TestConformance(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.DB { return memkv.New() })
}
