package base

import (
	"github.com/chatctx/chatctx/pool"
)

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
