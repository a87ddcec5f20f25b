package cli

import (
	"bytes"
	"context"
	"fmt"
	"mime"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// attach appends files to a message's text, the images first.
func attach(ctx context.Context, m *chatctx.Message, images, files []string) error {
	for _, path := range images {
		b, err := readFile(ctx, path)
		if err != nil {
			return err
		}
		kind := mediaType(b, path)
		if !strings.HasPrefix(kind, "image/") {
			return &usageError{fmt.Sprintf("%s is not an image: its content is %s", path, kind), "--file takes files of any kind"}
		}
		m.Content = append(m.Content, pool.Part{Type: pool.ImagePart, MediaType: kind, Name: filepath.Base(path), Data: b})
	}
	for _, path := range files {
		b, err := readFile(ctx, path)
		if err != nil {
			return err
		}
		m.Content = append(m.Content, pool.Part{Type: pool.DocumentPart, MediaType: mediaType(b, path), Name: filepath.Base(path), Data: b})
	}
	return nil
}

// signatures are the beginnings of contents whose type does not depend on the name.
var signatures = []struct {
	offset int
	magic  string
	kind   string
}{
	{0, "\x89PNG\r\n\x1a\n", "image/png"},
	{0, "\xff\xd8\xff", "image/jpeg"},
	{0, "GIF87a", "image/gif"},
	{0, "GIF89a", "image/gif"},
	{8, "WEBP", "image/webp"},
	{4, "ftypheic", "image/heic"},
	{4, "ftypavif", "image/avif"},
	{0, "BM", "image/bmp"},
	{0, "II*\x00", "image/tiff"},
	{0, "MM\x00*", "image/tiff"},
	{0, "%PDF-", "application/pdf"},
	{0, "PK\x03\x04", "application/zip"},
}

// mediaType determines a media type by the beginning of the bytes, else by the name's ending; but a name alone makes nothing an image.
func mediaType(b []byte, name string) string {
	byName, _, _ := mime.ParseMediaType(mime.TypeByExtension(strings.ToLower(filepath.Ext(name))))
	for _, s := range signatures {
		if len(b) >= s.offset && bytes.HasPrefix(b[s.offset:], []byte(s.magic)) {
			if s.kind == "application/zip" && byName != "" {
				return byName // office documents are ZIP files
			}
			return s.kind
		}
	}
	if byName == "image/svg+xml" && utf8.Valid(b) {
		return byName
	}
	if byName != "" && !strings.HasPrefix(byName, "image/") {
		return byName
	}
	if utf8.Valid(b) {
		return "text/plain"
	}
	return "application/octet-stream"
}
