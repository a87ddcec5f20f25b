// Package page has the files of the page that `chatctx web` shows: plain modules of JavaScript without a build step, which ask the API of package serve and nothing
// else. A program that serves the API gives Files to serve.Options to show it too.
//
// vendor/markdown-it.js is markdown-it 15.0.3 as it is published (MIT, its licence is beside it).
package page

import (
	"embed"
	"io/fs"
)

//go:embed assets
var assets embed.FS

// Files are index.html and what it loads.
var Files = func() fs.FS {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return files
}()
