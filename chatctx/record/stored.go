package record

import "github.com/chatctx/chatctx/pool"

// The stored form of a record has its fields, and the keys that this program does not know.
type (
	plainTask      Task
	plainTool      Tool
	plainRemote    Remote
	plainRule      Rule
	plainCondition Condition
	plainCall      CallRecord
	plainDecision  Decision
	plainClaim     Claim
)

// MarshalCBOR returns the stored form.
func (t Task) MarshalCBOR() ([]byte, error) { return pool.MarshalKept(plainTask(t), t.Unknown) }

// UnmarshalCBOR decodes the stored form.
func (t *Task) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*plainTask)(t), &t.Unknown)
}

// MarshalCBOR returns the stored form.
func (t Tool) MarshalCBOR() ([]byte, error) { return pool.MarshalKept(plainTool(t), t.Unknown) }

// UnmarshalCBOR decodes the stored form.
func (t *Tool) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*plainTool)(t), &t.Unknown)
}

// MarshalCBOR returns the stored form.
func (r Remote) MarshalCBOR() ([]byte, error) { return pool.MarshalKept(plainRemote(r), r.Unknown) }

// UnmarshalCBOR decodes the stored form.
func (r *Remote) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*plainRemote)(r), &r.Unknown)
}

// MarshalCBOR returns the stored form.
func (r Rule) MarshalCBOR() ([]byte, error) { return pool.MarshalKept(plainRule(r), r.Unknown) }

// UnmarshalCBOR decodes the stored form.
func (r *Rule) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*plainRule)(r), &r.Unknown)
}

// MarshalCBOR returns the stored form.
func (c Condition) MarshalCBOR() ([]byte, error) {
	return pool.MarshalKept(plainCondition(c), c.Unknown)
}

// UnmarshalCBOR decodes the stored form.
func (c *Condition) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*plainCondition)(c), &c.Unknown)
}

// MarshalCBOR returns the stored form.
func (c CallRecord) MarshalCBOR() ([]byte, error) { return pool.MarshalKept(plainCall(c), c.Unknown) }

// UnmarshalCBOR decodes the stored form.
func (c *CallRecord) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*plainCall)(c), &c.Unknown)
}

// MarshalCBOR returns the stored form.
func (d Decision) MarshalCBOR() ([]byte, error) { return pool.MarshalKept(plainDecision(d), d.Unknown) }

// UnmarshalCBOR decodes the stored form.
func (d *Decision) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*plainDecision)(d), &d.Unknown)
}

// MarshalCBOR returns the stored form.
func (c Claim) MarshalCBOR() ([]byte, error) { return pool.MarshalKept(plainClaim(c), c.Unknown) }

// UnmarshalCBOR decodes the stored form.
func (c *Claim) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*plainClaim)(c), &c.Unknown)
}
