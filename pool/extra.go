package pool

import "github.com/chatctx/chatctx/internal/stored"

// record has what this program does not know of a record of a later version, by its keys.
type record = stored.Map

// extensible is a pointer to a type that keeps unknown keys.
type extensible[T any] interface {
	*T
	extras() *record
}

func (m *Message) extras() *record  { return &m.Extra }
func (p *Part) extras() *record     { return &p.Extra }
func (c *Call) extras() *record     { return &c.Extra }
func (r *Result) extras() *record   { return &r.Extra }
func (d *Metadata) extras() *record { return &d.Extra }
func (s *Source) extras() *record   { return &s.Extra }

// The keys of two fields of a part.
const (
	partTypeKey = 1
	partRawKey  = 13
)
