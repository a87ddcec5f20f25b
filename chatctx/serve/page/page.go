// Package page has the files of the page that `chatctx web` shows: plain JavaScript modules without a build step, which use only the API of package serve. A
// program that serves the API passes Files in serve.Options to show it too.
//
// vendor/markdown-it.js is markdown-it 15.0.3 as published (MIT; its licence is beside it).
package page

import (
	"embed"
	"io/fs"
)

//go:embed assets
var assets embed.FS

// Files has index.html and the files that it loads.
var Files = func() fs.FS {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return files
}()
