package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// place keeps, in the person's own files, where that person is in a store that many share: a folder by the store's id, in it a file with the id of the
// current context, and for each context with another active branch than its own a file with that branch's id.
type place struct {
	dir string
	err error // why there is no folder
}

// placeOf returns the Place of a store.
func placeOf(store pool.ID) record.Place {
	dir, err := stateDir()
	return &place{filepath.Join(dir, "places", store.String()), err}
}

// stateDir is chatctx's folder for the state of a user's programs.
func stateDir() (string, error) {
	dir, err := userDir("XDG_STATE_HOME", "state")
	if err != nil {
		return "", fmt.Errorf("no folder to note where you are: %w", err)
	}
	return dir, nil
}

const currentFile = "current"

// Context implements record.Place.
func (p *place) Context() (pool.ID, error) { return p.read(currentFile) }

// Branch implements record.Place.
func (p *place) Branch(context pool.ID) (pool.ID, error) { return p.read(context.String()) }

// Use implements record.Place.
func (p *place) Use(context pool.ID) error { return p.write(currentFile, context) }

// Switch implements record.Place.
func (p *place) Switch(context, branch pool.ID) error { return p.write(context.String(), branch) }

func (p *place) read(name string) (pool.ID, error) {
	if p.err != nil {
		return pool.ID{}, p.err
	}
	path := filepath.Join(p.dir, name)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return pool.ID{}, nil
	}
	if err != nil {
		return pool.ID{}, err
	}
	var id pool.ID
	if err := id.UnmarshalText(bytes.TrimSpace(text)); err != nil {
		return pool.ID{}, fmt.Errorf("%s does not hold an id: remove it, and choose again with chatctx use and switch", path)
	}
	return id, nil
}

// write replaces a file as a whole, so that two commands of one person do not mix theirs.
func (p *place) write(name string, id pool.ID) error {
	if p.err != nil {
		return p.err
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(p.dir, "."+name+".*")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, id)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(p.dir, name))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
