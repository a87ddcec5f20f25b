//go:build !linux && !darwin && !windows

package boltkv

import (
	"errors"
	"os"
)

// On other systems there is no lock file: bbolt's own lock keeps programs apart, and waiting for it is not fair.

const (
	canLock    = false
	canBlock   = false
	removeOpen = true
)

func tryLock(*os.File, int64, lockKind) (bool, error) { return false, errors.ErrUnsupported }

func waitLock(*os.File, int64, lockKind) error { return errors.ErrUnsupported }

func unlock(*os.File, int64) error { return errors.ErrUnsupported }

func taken(*os.File, int64) bool { return false }

func releaseBolt(*os.File) {}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func sameOwner(string, os.FileInfo) {}

// mapGrows: mapping a file that is open to write grows it to the size of the map.
const mapGrows = false

// held reports whether another program's use of the file caused the error. On this system none does.
func held(error) bool { return false }

func nameHeld(error) bool { return false }
