package adapter

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// onePNG is a PNG of 1 by 1 pixels.
const onePNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg=="

func TestMedia(t *testing.T) {
	image, _ := base64.StdEncoding.DecodeString(onePNG)
	rules := &MediaRules{Images: []string{"image/png"}, ImageBytes: 100, Documents: []string{"application/pdf"}, FileBytes: 20, URLs: true, Own: []string{"gs://"}}
	d := &chatctx.Draft{Artifact: func(h pool.Hash) ([]byte, error) {
		if h[0] == 1 {
			return image, nil
		}
		return nil, errors.New("gone")
	}}
	for name, c := range map[string]struct {
		part       pool.Part
		kind, left string
		text       string
	}{
		"png":             {part: pool.Part{Type: "image", Data: image}, kind: "image/png"},
		"said to be jpeg": {part: pool.Part{Type: "image", MediaType: "image/jpeg", Data: image}, kind: "image/png"},
		"document":        {part: pool.Part{Type: "document", MediaType: "application/octet-stream", Data: image}, kind: "image/png"},
		"artifact":        {part: pool.Part{Type: "image", SHA256: pool.Hash{1}}, kind: "image/png"},
		"lost":            {part: pool.Part{Type: "image", SHA256: pool.Hash{2}}, left: "not in the store"},
		"none":            {part: pool.Part{Type: "image"}, left: "empty"},
		"no bytes":        {part: pool.Part{Type: "image", Data: []byte{}}, left: "empty"},
		"words":           {part: pool.Part{Type: "image", MediaType: "image/png", Data: []byte("hello")}, left: "not an image"},
		"gif":             {part: pool.Part{Type: "image", Data: []byte("GIF89a\x01\x00\x01\x00\x00\x00\x00")}, left: "image/gif is not taken"},
		"large":           {part: pool.Part{Type: "image", Data: append(image, make([]byte, 100)...)}, kind: "image/png"}, // it is made smaller
		"large, broken":   {part: pool.Part{Type: "image", Data: append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 100)...)}, left: "the limit is 100"},
		"data url":        {part: pool.Part{Type: "image", URL: "data:image/png;base64," + onePNG}, kind: "image/png"},
		"bad data url":    {part: pool.Part{Type: "image", URL: "data:image/png;base64,???"}, left: "cannot be read"},
		"web":             {part: pool.Part{Type: "image", URL: "https://example.com/a.png"}},
		"file url":        {part: pool.Part{Type: "image", URL: "file:///etc/passwd"}, left: "not one of the web"},
		"document url":    {part: pool.Part{Type: "document", URL: "https://example.com/a.pdf"}, left: "web addresses are not taken"},
		"own url":         {part: pool.Part{Type: "document", URL: "gs://bucket/a.pdf", MediaType: "application/pdf"}, kind: "application/pdf"},
		"pdf":             {part: pool.Part{Type: "document", Data: []byte("%PDF-1.7")}, kind: "application/pdf"},
		"large pdf":       {part: pool.Part{Type: "document", Data: []byte("%PDF-1.7" + strings.Repeat(" ", 30))}, left: "the limit is 20"},
		"text":            {part: pool.Part{Type: "document", Name: "a.md", MediaType: "text/markdown", Data: []byte("# hi")}, text: "[document a.md]\n# hi"},
		"blank":           {part: pool.Part{Type: "document", Data: []byte(" \n")}, left: "empty"},
		"unknown":         {part: pool.Part{Type: "document", Data: []byte{0, 1, 2}}, left: "application/octet-stream is not taken"},
		"said to be zip":  {part: pool.Part{Type: "document", MediaType: "application/zip; x=y", Data: []byte{0, 1, 2}}, left: "application/zip is not taken"},
	} {
		m, text := newMedia(d, &c.part, rules)
		if c.left == "" && m.left != "" || !strings.Contains(m.left, c.left) || text != c.text || c.kind != "" && m.Type != c.kind {
			t.Errorf("%s: type %q, left %q, text %q", name, m.Type, m.left, text)
		}
	}
}

func TestSizeOf(t *testing.T) {
	vp8x := "RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x7f\x02\x00\xdf\x01\x00"
	vp8l := "RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00\x2f\x7f\xc2\x77\x00\x00\x00\x00\x00\x00"
	vp8 := "RIFF\x00\x00\x00\x00WEBPVP8 \x00\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x80\x02\xe0\x01"
	for name, data := range map[string]string{"VP8X": vp8x, "VP8L": vp8l, "VP8": vp8} {
		if w, h := sizeOf([]byte(data)); w != 640 || h != 480 {
			t.Errorf("%s: %d x %d", name, w, h)
		}
	}
	if w, h := sizeOf([]byte("nothing")); w != 0 || h != 0 {
		t.Errorf("%d x %d", w, h)
	}
}
