package pool

import (
	"bytes"
	"mime"
	"net/http"
)

// signature is how contents of a media type begin: magic stands at an offset.
type signature struct {
	offset    int
	magic     string
	mediaType string
}

// signatures are types that net/http does not know.
var signatures = []signature{
	{4, "ftypavif", "image/avif"},
	{4, "ftypheic", "image/heic"},
	{4, "ftypheix", "image/heic"},
	{4, "ftypmif1", "image/heif"},
	{4, "ftypM4A ", "audio/mp4"},
	{4, "ftypqt  ", "video/quicktime"},
	{0, "II*\x00", "image/tiff"},
	{0, "MM\x00*", "image/tiff"},
	{0, "\x00\x00\x00\x0cJXL \r\n\x87\n", "image/jxl"},
	{0, "fLaC", "audio/flac"},
	{0, "\xff\xfb", "audio/mpeg"},
	{0, "\xff\xf1", "audio/aac"},
	{0, "{\\rtf", "application/rtf"},
}

// SniffMediaType says by its first bytes what data is, as a media type without parameters: image/png, image/jpeg, image/gif,
// image/webp, image/svg+xml, application/pdf and others; text/plain for text of any kind that it does not know, and
// application/octet-stream for what it cannot tell.
func SniffMediaType(data []byte) string {
	for _, s := range signatures {
		if len(data) >= s.offset && bytes.HasPrefix(data[s.offset:], []byte(s.magic)) {
			return s.mediaType
		}
	}
	if isSVG(data) {
		return "image/svg+xml"
	}
	mediaType, _, err := mime.ParseMediaType(http.DetectContentType(data))
	if err != nil {
		return "application/octet-stream"
	}
	return mediaType
}

// isSVG looks for the root element behind an XML declaration, a document type and comments.
func isSVG(data []byte) bool {
	head := bytes.TrimPrefix(data[:min(len(data), 1024)], []byte("\xef\xbb\xbf"))
	head = bytes.TrimLeft(head, " \t\r\n")
	if bytes.HasPrefix(head, []byte("<svg")) {
		return true
	}
	return (bytes.HasPrefix(head, []byte("<?xml")) || bytes.HasPrefix(head, []byte("<!"))) && bytes.Contains(head, []byte("<svg"))
}
