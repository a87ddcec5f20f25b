package branch

import "github.com/chatctx/chatctx/pool"

// The types of a branch's record keep the keys that they do not know, at each level.

type (
	plainBranch  Branch
	plainSession Session
	plainDigest  Digest
	plainTokens  Tokens
)

// MarshalCBOR returns the stored form.
func (b Branch) MarshalCBOR() ([]byte, error) { return pool.MarshalKept(plainBranch(b), b.Unknown) }

// UnmarshalCBOR decodes the stored form.
func (b *Branch) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*plainBranch)(b), &b.Unknown)
}

// MarshalCBOR returns the stored form.
func (s Session) MarshalCBOR() ([]byte, error) { return pool.MarshalKept(plainSession(s), s.Unknown) }

// UnmarshalCBOR decodes the stored form.
func (s *Session) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*plainSession)(s), &s.Unknown)
}

// MarshalCBOR returns the stored form.
func (d Digest) MarshalCBOR() ([]byte, error) { return pool.MarshalKept(plainDigest(d), d.Unknown) }

// UnmarshalCBOR decodes the stored form.
func (d *Digest) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*plainDigest)(d), &d.Unknown)
}

// MarshalCBOR returns the stored form.
func (t Tokens) MarshalCBOR() ([]byte, error) { return pool.MarshalKept(plainTokens(t), t.Unknown) }

// UnmarshalCBOR decodes the stored form.
func (t *Tokens) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*plainTokens)(t), &t.Unknown)
}
