package base

import (
	"cmp"
	"context"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// MetaGate is the key of meta of a GateState, present since a gate was installed.
var MetaGate = []byte("gate")

// GateState is what the store knows of its gate. It is no setting: settings have many doors.
type GateState struct {
	Modes map[string]string `cbor:"1,keyasint,omitempty"` // of each agent, by its name
	Level string            `cbor:"2,keyasint,omitempty"` // own, apart, served
	// Salt and Phrase are of the passphrase with which a person shows at level own that an agent is not deciding: its Argon2id hash.
	Salt   []byte    `cbor:"3,keyasint,omitempty"`
	Phrase []byte    `cbor:"4,keyasint,omitempty"`
	Since  pool.Time `cbor:"5,keyasint,omitempty"` // when the first agent's hook was installed

	// Unknown has the keys of the stored form that this program does not know.
	Unknown string `cbor:"-" json:"-"`
}

// Mode returns the mode of an agent's gate: hold, unless a person chose another.
func (g *GateState) Mode(agent string) string { return cmp.Or(g.Modes[agent], record.GateHold) }

// LevelOf returns the level that holds.
func (g *GateState) LevelOf() string { return cmp.Or(g.Level, record.LevelOwn) }

// ReadGate reads the state of the store's gate.
func ReadGate(ctx context.Context, s *Store) (*GateState, error) {
	var g *GateState
	err := s.DB.View(ctx, func(tx kv.Tx) (err error) {
		g, err = GateIn(tx)
		return err
	})
	return g, err
}

// GateIn reads the state of the store's gate in a transaction.
func GateIn(tx kv.Tx) (*GateState, error) {
	g := &GateState{}
	_, err := GetRecord(tx, MetaBucket, MetaGate, g)
	return g, err
}
