package page_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/serve/page"
)

// markdownIt is SHA-256 of dist/browser/markdown-it.esm.min.mjs in the package markdown-it 15.0.3 of the npm registry.
const markdownIt = "d5432491790141da046b1197353705db03264f40b5727f3b4b591f5aba193e30"

func TestFilesAreSmallAndTheirOwn(t *testing.T) {
	const mostOwn, mostLines = 75 << 10, 350 // of the page's own files together, compressed, and of one of its modules
	var all bytes.Buffer
	zip := gzip.NewWriter(&all)
	err := fs.WalkDir(page.Files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(page.Files, path)
		if err != nil {
			return err
		}
		if strings.HasPrefix(path, "vendor/") {
			if sum := fmt.Sprintf("%x", sha256.Sum256(raw)); strings.HasSuffix(path, ".js") && sum != markdownIt {
				t.Errorf("%s is not the published file: %s", path, sum)
			}
			return nil
		}
		if lines := bytes.Count(raw, []byte("\n")); strings.HasSuffix(path, ".js") && lines > mostLines {
			t.Errorf("%s has %d lines, and a module at most %d", path, lines, mostLines)
		}
		if strings.HasSuffix(path, ".html") && (bytes.Contains(raw, []byte("<script>")) || bytes.Contains(raw, []byte(" style="))) {
			t.Errorf("%s has a script or a style inside, which the policy of the page forbids", path)
		}
		_, err = zip.Write(raw)
		return err
	})
	if err == nil {
		err = zip.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("the page's own files have %d bytes compressed", all.Len()); all.Len() > mostOwn {
		t.Errorf("the page's own files have %d bytes compressed, and may have %d", all.Len(), mostOwn)
	}
}
