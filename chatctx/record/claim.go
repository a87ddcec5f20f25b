package record

import (
	"encoding/hex"
	"fmt"

	"github.com/chatctx/chatctx/pool"
)

// Claim says who works on something: a branch's reply or a call. It is dead, and the next program that touches its work settles that, if its process is
// gone from the same host, if that host was restarted (both as far as can be known), or if it was not renewed for a minute.
type Claim struct {
	Token   pool.ID   `cbor:"1,keyasint" json:"-"` // new for each claim
	Program string    `cbor:"5,keyasint,omitempty" json:"program"`
	PID     int       `cbor:"2,keyasint" json:"pid,omitempty"` // 0: no process; the claim ends when it is not renewed
	Host    string    `cbor:"3,keyasint,omitempty" json:"host"`
	Boot    string    `cbor:"4,keyasint,omitempty" json:"-"` // identifies the boot of the host's kernel and, behind a "/", the namespace of process ids if there are several; "" if unknown
	Since   pool.Time `cbor:"6,keyasint" json:"-"`
	Renewed pool.Time `cbor:"7,keyasint" json:"-"`
	Task    pool.ID   `cbor:"8,keyasint,omitzero" json:"-"`   // of a call: the sub-context that answers it, as long as that runs
	Begun   pool.Time `cbor:"9,keyasint,omitempty" json:"-"`  // start of the process, on Windows, where nothing else distinguishes boots
	Ticks   int64     `cbor:"11,keyasint,omitempty" json:"-"` // Renewed on a clock that only runs forward and begins with the boot, in microseconds; 0: unknown
	Made    uint64    `cbor:"10,keyasint,omitempty" json:"-"` // of a branch that was made for the answer: the operation that made it. If no answer comes, the branch goes with the claim

	// Unknown has the keys of the stored form that this program does not know.
	Unknown string `cbor:"-" json:"-"`
}

// Who names the holder of the claim.
func (c *Claim) Who() string {
	switch {
	case c.Task != (pool.ID{}):
		return "its sub-context " + Short(c.Task)
	case c.PID > 0:
		return fmt.Sprintf("%s, process %d", c.Program, c.PID)
	}
	return c.Program
}

// Short returns an id as people see it: its last 8 hex digits, since ids made within a second begin alike.
func Short(id pool.ID) string { return hex.EncodeToString(id[12:]) }
