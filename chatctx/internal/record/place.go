package record

import (
	"github.com/chatctx/chatctx/pool"
)

// Place keeps where one person is in a store that many use at once, outside of the store. A store that has none keeps itself which context is the current one and which
// branch of each is the active one, for all who use it.
type Place interface {
	// Context is the person's current context, the zero id for none.
	Context() (pool.ID, error)
	// Branch is the person's active branch of a context, the zero id for the context's own.
	Branch(context pool.ID) (pool.ID, error)
	// Use makes a context the current one.
	Use(context pool.ID) error
	// Switch makes a branch of a context the active one.
	Switch(context, branch pool.ID) error
}

// PlaceLost is the error for a person whose active branch was removed by somebody else. It is an ErrConflict.
type PlaceLost struct{ Title, Branch string }

func (e *PlaceLost) Error() string {
	return "the branch " + e.Branch + " of \"" + e.Title + "\", on which you were, was removed: chatctx switch to another"
}

// Unwrap gives ErrConflict.
func (e *PlaceLost) Unwrap() error { return ErrConflict }

// Active is the branch of a context that is the active one for whoever uses the store.
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

// Placed puts the branch that is the active one for whoever uses the store into a record that is only read.
func (s *Store) Placed(id pool.ID, rec *ContextRecord) error {
	if s.Place == nil || rec == nil {
		return nil
	}
	active, err := s.Active(id, rec)
	rec.Active = active
	return err
}
