package base

import (
	"github.com/chatctx/chatctx/pool"
)

type (
	plainContext   ContextRecord
	plainOperation Operation
	plainChange    Change
	plainSource    SourceRecord
	plainToken     Token
)

// MarshalCBOR returns the stored form.
func (r ContextRecord) MarshalCBOR() ([]byte, error) {
	return pool.MarshalKept(plainContext(r), r.Unknown)
}

// UnmarshalCBOR decodes the stored form.
func (r *ContextRecord) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*plainContext)(r), &r.Unknown)
}

// MarshalCBOR returns the stored form.
func (o Operation) MarshalCBOR() ([]byte, error) {
	return pool.MarshalKept(plainOperation(o), o.Unknown)
}

// UnmarshalCBOR decodes the stored form.
func (o *Operation) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*plainOperation)(o), &o.Unknown)
}

// MarshalCBOR returns the stored form.
func (c Change) MarshalCBOR() ([]byte, error) { return pool.MarshalKept(plainChange(c), c.Unknown) }

// UnmarshalCBOR decodes the stored form.
func (c *Change) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*plainChange)(c), &c.Unknown)
}

// MarshalCBOR returns the stored form.
func (r SourceRecord) MarshalCBOR() ([]byte, error) {
	return pool.MarshalKept(plainSource(r), r.Unknown)
}

// UnmarshalCBOR decodes the stored form.
func (r *SourceRecord) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*plainSource)(r), &r.Unknown)
}

// MarshalCBOR returns the stored form.
func (t Token) MarshalCBOR() ([]byte, error) { return pool.MarshalKept(plainToken(t), t.Unknown) }

// UnmarshalCBOR decodes the stored form.
func (t *Token) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*plainToken)(t), &t.Unknown)
}
