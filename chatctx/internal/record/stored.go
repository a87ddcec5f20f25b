package record

import (
	"encoding/json"
	"time"

	"github.com/chatctx/chatctx/pool"
)

// The types in this file define how public types are stored: the same fields with their keys in a record. If a field is added to only one of a pair, the
// conversions do not compile.

type (
	// StoredTool is how a Tool is stored.
	StoredTool struct {
		Name        string            `cbor:"1,keyasint"`
		Description string            `cbor:"2,keyasint,omitempty"`
		Schema      json.RawMessage   `cbor:"3,keyasint,omitempty"`
		Command     []string          `cbor:"4,keyasint,omitempty"`
		MCP         bool              `cbor:"5,keyasint,omitempty"`
		URL         string            `cbor:"6,keyasint,omitempty"`
		Dir         string            `cbor:"7,keyasint,omitempty"`
		Env         map[string]string `cbor:"8,keyasint,omitempty"`
		Timeout     time.Duration     `cbor:"9,keyasint,omitempty"`
		Repeatable  bool              `cbor:"10,keyasint,omitempty"`
		Prune       string            `cbor:"11,keyasint,omitempty"`
		Remotes     []Remote          `cbor:"12,keyasint,omitempty"`
		Stdin       bool              `cbor:"13,keyasint,omitempty"`
		Dashes      bool              `cbor:"14,keyasint,omitempty"`
		Headers     map[string]string `cbor:"15,keyasint,omitempty"`
		Remote      string            `cbor:"-"`

		Unknown pool.Unknown `cbor:"-"`
	}

	storedRemote struct {
		Name        string          `cbor:"1,keyasint"`
		Description string          `cbor:"2,keyasint,omitempty"`
		Schema      json.RawMessage `cbor:"3,keyasint,omitempty"`

		Unknown pool.Unknown `cbor:"-"`
	}

	storedRule struct {
		ID       pool.ID       `cbor:"-"`
		Effect   string        `cbor:"1,keyasint"`
		Tool     string        `cbor:"2,keyasint"`
		When     []Condition   `cbor:"3,keyasint,omitempty"`
		Context  pool.ID       `cbor:"-"`
		Branch   pool.ID       `cbor:"4,keyasint,omitzero"`
		Message  pool.ID       `cbor:"5,keyasint,omitzero"`
		Index    int           `cbor:"6,keyasint,omitempty"`
		Default  bool          `cbor:"7,keyasint,omitempty"`
		Expires  pool.Time     `cbor:"8,keyasint,omitempty"`
		After    time.Duration `cbor:"9,keyasint,omitempty"`
		Reason   string        `cbor:"10,keyasint,omitempty"`
		Mode     string        `cbor:"11,keyasint,omitempty"`
		By       string        `cbor:"12,keyasint,omitempty"`
		Created  pool.Time     `cbor:"13,keyasint,omitempty"`
		Unless   []Condition   `cbor:"14,keyasint,omitempty"`
		Examples []string      `cbor:"15,keyasint,omitempty"`

		Unknown pool.Unknown `cbor:"-"`
	}

	storedCondition struct {
		Argument string `cbor:"1,keyasint,omitempty"`
		Op       string `cbor:"2,keyasint"`
		Value    string `cbor:"3,keyasint"`

		Unknown pool.Unknown `cbor:"-"`
	}

	// StoredTask is how a Task is stored.
	StoredTask struct {
		Goal       string    `cbor:"1,keyasint,omitempty"`
		Branch     pool.ID   `cbor:"2,keyasint"`
		BranchName string    `cbor:"3,keyasint"`
		Message    pool.ID   `cbor:"4,keyasint,omitzero"`
		Index      int       `cbor:"5,keyasint,omitempty"`
		State      string    `cbor:"6,keyasint"`
		Depth      int       `cbor:"7,keyasint"`
		MaxDepth   int       `cbor:"8,keyasint,omitempty"`
		MaxRounds  int       `cbor:"9,keyasint,omitempty"`
		MaxTokens  int64     `cbor:"10,keyasint,omitempty"`
		OwnRules   bool      `cbor:"11,keyasint,omitempty"`
		Keep       bool      `cbor:"12,keyasint,omitempty"`
		Summary    pool.ID   `cbor:"13,keyasint,omitzero"`
		Reason     string    `cbor:"14,keyasint,omitempty"`
		Ended      pool.Time `cbor:"15,keyasint,omitempty"`
		Linked     bool      `cbor:"16,keyasint,omitempty"`

		Unknown pool.Unknown `cbor:"-"`
	}

	storedDecision struct {
		At         pool.Time       `cbor:"1,keyasint"`
		From       string          `cbor:"2,keyasint"`
		To         string          `cbor:"3,keyasint"`
		ByKind     string          `cbor:"4,keyasint"`
		ByName     string          `cbor:"5,keyasint,omitempty"`
		Program    string          `cbor:"6,keyasint,omitempty"`
		Reason     string          `cbor:"7,keyasint,omitempty"`
		ArgsSHA256 pool.Hash       `cbor:"8,keyasint,omitzero"`
		Arguments  json.RawMessage `cbor:"9,keyasint,omitempty"`
		Said       bool            `cbor:"10,keyasint,omitempty"`
		User       string          `cbor:"11,keyasint,omitempty"`
		Claimed    string          `cbor:"12,keyasint,omitempty"`
		Runs       *Runs           `cbor:"13,keyasint,omitempty"`

		Unknown pool.Unknown `cbor:"-"`
	}

	storedClaim struct {
		Token   pool.ID   `cbor:"1,keyasint"`
		PID     int       `cbor:"2,keyasint"`
		Host    string    `cbor:"3,keyasint,omitempty"`
		Boot    string    `cbor:"4,keyasint,omitempty"`
		Program string    `cbor:"5,keyasint,omitempty"`
		Since   pool.Time `cbor:"6,keyasint"`
		Renewed pool.Time `cbor:"7,keyasint"`
		Task    pool.ID   `cbor:"8,keyasint,omitzero"`
		Begun   pool.Time `cbor:"9,keyasint,omitempty"`
		Ticks   int64     `cbor:"11,keyasint,omitempty"`
		Made    uint64    `cbor:"10,keyasint,omitempty"`

		Unknown pool.Unknown `cbor:"-"`
	}
)

type (
	plainContext   ContextRecord
	plainCall      CallRecord
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
func (c CallRecord) MarshalCBOR() ([]byte, error) { return pool.MarshalKept(plainCall(c), c.Unknown) }

// UnmarshalCBOR decodes the stored form.
func (c *CallRecord) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*plainCall)(c), &c.Unknown)
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

// MarshalCBOR returns the stored form.
func (t Tool) MarshalCBOR() ([]byte, error) { return pool.MarshalKept(StoredTool(t), t.Unknown) }

// UnmarshalCBOR decodes the stored form.
func (t *Tool) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*StoredTool)(t), &t.Unknown)
}

// MarshalCBOR returns the stored form.
func (r Remote) MarshalCBOR() ([]byte, error) { return pool.MarshalKept(storedRemote(r), r.Unknown) }

// UnmarshalCBOR decodes the stored form.
func (r *Remote) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*storedRemote)(r), &r.Unknown)
}

// MarshalCBOR returns the stored form.
func (r Rule) MarshalCBOR() ([]byte, error) { return pool.MarshalKept(storedRule(r), r.Unknown) }

// UnmarshalCBOR decodes the stored form.
func (r *Rule) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*storedRule)(r), &r.Unknown)
}

// MarshalCBOR returns the stored form.
func (c Condition) MarshalCBOR() ([]byte, error) {
	return pool.MarshalKept(storedCondition(c), c.Unknown)
}

// UnmarshalCBOR decodes the stored form.
func (c *Condition) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*storedCondition)(c), &c.Unknown)
}

// MarshalCBOR returns the stored form.
func (t Task) MarshalCBOR() ([]byte, error) { return pool.MarshalKept(StoredTask(t), t.Unknown) }

// UnmarshalCBOR decodes the stored form.
func (t *Task) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*StoredTask)(t), &t.Unknown)
}

// MarshalCBOR returns the stored form.
func (d Decision) MarshalCBOR() ([]byte, error) {
	return pool.MarshalKept(storedDecision(d), d.Unknown)
}

// UnmarshalCBOR decodes the stored form.
func (d *Decision) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*storedDecision)(d), &d.Unknown)
}

// MarshalCBOR returns the stored form.
func (c Claim) MarshalCBOR() ([]byte, error) { return pool.MarshalKept(storedClaim(c), c.Unknown) }

// UnmarshalCBOR decodes the stored form.
func (c *Claim) UnmarshalCBOR(raw []byte) error {
	return pool.UnmarshalKept(raw, (*storedClaim)(c), &c.Unknown)
}
