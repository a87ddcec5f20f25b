// Package watch tells which files are written to in folders of other programs. It only looks: it opens no file and writes nothing.
package watch

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// Files calls changed for each file that is written to or made in the given files and folders, and in folders that are made in them, until ctx ends,
// one call at a time. A file is told with those whose names it begins, as a database with its log. ready is called when nothing is missed any more. The
// error is ctx's, or says why there is nothing to watch with.
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

// tree is what is watched.
type tree struct {
	w     *fsnotify.Watcher
	roots []string
}

// add watches a folder with those in it, or the folder of a file, and tells of the files that are there already; found is nil where they are known.
func (t *tree) add(root string, found func(string)) error {
	return filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // it is gone again, or not to be read
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

// wanted tells whether a file is one of those that are watched: beside a single file lie others.
func (t *tree) wanted(p string) bool {
	for _, root := range t.roots {
		rest, ok := strings.CutPrefix(p, root)
		if ok && (rest == "" || rest[0] == filepath.Separator || rest[0] == '-') {
			return true
		}
	}
	return false
}
