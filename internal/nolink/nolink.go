// Package nolink opens files in folders that may come from elsewhere, and never what a link in their place leads to. A folder that a stranger made can hold
// a link where a program writes without being asked, such as a lock file; the program would write into any file of the person.
package nolink

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrLink means that a link stands where the program writes a file. The text of the error names both.
var ErrLink = errors.New("it is a link, and nothing is written where it leads")

// Check returns an ErrLink if a link stands at path, whether or not it leads anywhere. It returns nil for everything else, and for nothing.
func Check(path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return nil
	}
	to, err := os.Readlink(path)
	if err != nil {
		to = "?"
	}
	return fmt.Errorf("%s: %w (%s): remove it or name another file", path, ErrLink, to)
}

// Open opens the ordinary file at path, and never makes one. It returns an ErrLink for a link, and for anything else an error without a name of its own.
func Open(path string, flag int) (*os.File, os.FileInfo, error) {
	for {
		seen, err := os.Lstat(path)
		if err == nil && !seen.Mode().IsRegular() {
			err = errors.Join(Check(path), fmt.Errorf("%s is not an ordinary file", path))
		}
		if err != nil {
			return nil, nil, err
		}
		f, err := os.OpenFile(path, flag&^(os.O_CREATE|os.O_TRUNC), 0)
		if err != nil {
			return nil, nil, err
		}
		info, err := f.Stat()
		if err == nil && os.SameFile(seen, info) {
			return f, info, nil
		}
		f.Close() // something else came to path meanwhile
		if err != nil {
			return nil, nil, err
		}
	}
}
