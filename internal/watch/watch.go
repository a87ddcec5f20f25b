// Package watch reports which files in the folders of other programs are written to. It only looks: it opens no file and writes nothing.
package watch

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// Files calls changed for each file that is created or written to, one call at a time, until ctx ends. It watches the given files and folders, folders created
// in them later, and the files beside a given file whose names begin with its name and a hyphen, such as a database's log. It calls ready once it misses
// nothing any more. It returns ctx's error, or the error that ended the watching.
func Files(ctx context.Context, roots []string, ready func(), changed func(path string)) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer w.Close()
	t := &tree{w: w, roots: roots}
	for _, root := range roots {
		if err := t.add(root, nil); err != nil {
			return err
		}
	}
	ready()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-w.Events:
			if e.Has(fsnotify.Create) {
				if err := t.add(e.Name, changed); err != nil {
					return err
				}
			}
			if e.Has(fsnotify.Write) && t.wanted(e.Name) {
				changed(e.Name)
			}
		case err := <-w.Errors:
			return err
		}
	}
}

// tree is the watched files and folders.
type tree struct {
	w     *fsnotify.Watcher
	roots []string
}

// add watches a folder and the folders in it, or the folder of a file. It calls found for each file that already exists; found is nil at the start, when those
// files are no news.
func (t *tree) add(root string, found func(string)) error {
	return filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // it is gone again, or unreadable
		case e.IsDir():
			return t.w.Add(p)
		case p == root && found == nil:
			return t.w.Add(filepath.Dir(p))
		case found != nil && e.Type().IsRegular() && t.wanted(p):
			found(p)
		}
		return nil
	})
}

// wanted reports whether a file is one of those to report: the folder of a single file holds others too.
func (t *tree) wanted(p string) bool {
	for _, root := range t.roots {
		rest, ok := strings.CutPrefix(p, root)
		if ok && (rest == "" || rest[0] == filepath.Separator || rest[0] == '-') {
			return true
		}
	}
	return false
}
