package base

import (
	"github.com/chatctx/chatctx/pool"
)

// Place keeps one person's place, outside a store that many use at the same time: the current context, and the active branch of each context. Without a
// Place the store keeps these itself, for all its users.
type Place interface {
	// Context returns the person's current context, the zero id if there is none.
	Context() (pool.ID, error)
	// Branch returns the person's active branch of a context; the zero id means the context's own.
	Branch(context pool.ID) (pool.ID, error)
	// Use makes a context the current one, the zero id none.
	Use(context pool.ID) error
	// Switch makes a branch the active one of a context.
	Switch(context, branch pool.ID) error
}

// PlaceLost is the error for a person whose active branch somebody else removed. It is an ErrConflict.
type PlaceLost struct{ Title, Branch string }

func (e *PlaceLost) Error() string {
	return "the branch " + e.Branch + " of \"" + e.Title + "\", on which you were, was removed: chatctx switch to another"
}

// Unwrap returns ErrConflict.
func (e *PlaceLost) Unwrap() error { return ErrConflict }

// Active returns the branch of a context that is active for the user of the store.
func (s *Store) Active(id pool.ID, rec *ContextRecord) (pool.ID, error) {
	if s.Place == nil {
		return rec.Active, nil
	}
	b, err := s.Place.Branch(id)
	if b == (pool.ID{}) {
		b = rec.Active
	}
	return b, err
}

// Placed sets Active in a record that is only read to the branch that is active for the user of the store.
func (s *Store) Placed(id pool.ID, rec *ContextRecord) error {
	if s.Place == nil || rec == nil {
		return nil
	}
	active, err := s.Active(id, rec)
	rec.Active = active
	return err
}
