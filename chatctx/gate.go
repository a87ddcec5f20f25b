package chatctx

import (
	"encoding/json"
)

// texts is Store.texts before the batch's transaction.
func (b *Batch) texts(kind string, texts ...*string) {
	b.prepare = append(b.prepare, func() error { return b.store.at.Texts(kind, texts...) })
}

// value is Store.value before the batch's transaction.
func (b *Batch) value(kind string, raw *json.RawMessage) {
	b.prepare = append(b.prepare, func() error { return b.store.at.Value(kind, raw) })
}

// values is Store.values before the batch's transaction.
func (b *Batch) values(kind string, m *map[string]json.RawMessage) {
	b.prepare = append(b.prepare, func() error { return b.store.at.Values(kind, m) })
}
