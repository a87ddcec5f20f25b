package pool

import (
	"bytes"
	"encoding/binary"
)

// signature is how contents of a media type begin. If loose is set, a dot in pattern matches any byte.
type signature struct {
	offset    int
	pattern   string
	mediaType string
	loose     bool
}

// signatures has the independent ones of the WHATWG's MIME sniffing, preceded by some more that people send to models. The first match wins. net/http knows
// the former too, but importing it would link a whole HTTP client into every program.
var signatures = [...]signature{
	{4, "ftypavif", "image/avif", false},
	{4, "ftypheic", "image/heic", false},
	{4, "ftypheix", "image/heic", false},
	{4, "ftypmif1", "image/heif", false},
	{4, "ftypM4A ", "audio/mp4", false},
	{4, "ftypqt  ", "video/quicktime", false},
	{0, "II*\x00", "image/tiff", false},
	{0, "MM\x00*", "image/tiff", false},
	{0, "\x00\x00\x00\x0cJXL \r\n\x87\n", "image/jxl", false},
	{0, "fLaC", "audio/flac", false},
	{0, "\xff\xfb", "audio/mpeg", false},
	{0, "\xff\xf1", "audio/aac", false},
	{0, "{\\rtf", "application/rtf", false},

	{0, "%PDF-", "application/pdf", false},
	{0, "%!PS-Adobe-", "application/postscript", false},
	{0, "\xfe\xff..", textType, true}, // byte order marks
	{0, "\xff\xfe..", textType, true},
	{0, "\xef\xbb\xbf.", textType, true},
	{0, "\x00\x00\x01\x00", "image/x-icon", false},
	{0, "\x00\x00\x02\x00", "image/x-icon", false},
	{0, "BM", "image/bmp", false},
	{0, "GIF87a", "image/gif", false},
	{0, "GIF89a", "image/gif", false},
	{0, "RIFF....WEBPVP", "image/webp", true},
	{0, "\x89PNG\r\n\x1a\n", "image/png", false},
	{0, "\xff\xd8\xff", "image/jpeg", false},
	{0, "FORM....AIFF", "audio/aiff", true},
	{0, "ID3", "audio/mpeg", false},
	{0, "OggS\x00", "application/ogg", false},
	{0, "MThd\x00\x00\x00\x06", "audio/midi", false},
	{0, "RIFF....AVI ", "video/avi", true},
	{0, "RIFF....WAVE", "audio/wave", true},
	{0, "\x1a\x45\xdf\xa3", "video/webm", false},
	{34, "LP", "application/vnd.ms-fontobject", false},
	{0, "\x00\x01\x00\x00", "font/ttf", false},
	{0, "OTTO", "font/otf", false},
	{0, "ttcf", "font/collection", false},
	{0, "wOFF", "font/woff", false},
	{0, "wOF2", "font/woff2", false},
	{0, "\x1f\x8b\x08", "application/x-gzip", false},
	{0, "PK\x03\x04", "application/zip", false},
	{0, "Rar!\x1a\x07\x00", "application/x-rar-compressed", false},
	{0, "Rar!\x1a\x07\x01\x00", "application/x-rar-compressed", false},
	{0, "\x00asm", "application/wasm", false},
}

const textType = "text/plain"

// SniffMediaType guesses a media type, without parameters, from the first bytes of data: image/png, image/jpeg, image/gif, image/webp, image/svg+xml,
// application/pdf and others. It returns text/plain for any other text and application/octet-stream for anything else.
func SniffMediaType(data []byte) string {
	for i := range signatures {
		if s := &signatures[i]; s.fits(data) {
			return s.mediaType
		}
	}
	head := data[:min(len(data), 512)]
	switch text := bytes.TrimLeft(head, "\t\n\f\r "); {
	case isSVG(data):
		return "image/svg+xml"
	case isHTML(text):
		return "text/html"
	case bytes.HasPrefix(text, []byte("<?xml")):
		return "text/xml"
	case isMP4(head):
		return "video/mp4"
	case isText(text):
		return textType
	}
	return "application/octet-stream"
}

func (s *signature) fits(data []byte) bool {
	if len(data) < s.offset+len(s.pattern) {
		return false
	}
	data = data[s.offset:]
	for i := range len(s.pattern) {
		if data[i] != s.pattern[i] && !(s.loose && s.pattern[i] == '.') {
			return false
		}
	}
	return true
}

// htmlTags are the beginnings of HTML pages, without the <.
var htmlTags = [...]string{"!DOCTYPE HTML", "HTML", "HEAD", "SCRIPT", "IFRAME", "H1", "DIV", "FONT", "TABLE", "A", "STYLE", "TITLE", "B", "BODY", "BR", "P", "!--"}

func isHTML(text []byte) bool {
	for _, tag := range htmlTags {
		if n := 1 + len(tag); len(text) > n && text[0] == '<' && bytes.EqualFold(text[1:n], []byte(tag)) && (text[n] == ' ' || text[n] == '>') {
			return true
		}
	}
	return false
}

// isMP4 looks for a brand of MP4 in the first box.
func isMP4(data []byte) bool {
	if len(data) < 12 || string(data[4:8]) != "ftyp" {
		return false
	}
	size := binary.BigEndian.Uint32(data)
	if uint64(size) > uint64(len(data)) || size%4 != 0 {
		return false
	}
	for at := uint32(8); at < size; at += 4 {
		if at != 12 && string(data[at:at+3]) == "mp4" { // at 12 is a version
			return true
		}
	}
	return false
}

// isText reports whether data has no control characters other than those of texts.
func isText(data []byte) bool {
	return !bytes.ContainsFunc(data, func(c rune) bool { return c < ' ' && c != '\t' && c != '\n' && c != '\f' && c != '\r' && c != 0x1b })
}

// isSVG looks for the root element after an XML declaration, a document type and comments.
func isSVG(data []byte) bool {
	head := bytes.TrimPrefix(data[:min(len(data), 1024)], []byte("\xef\xbb\xbf"))
	head = bytes.TrimLeft(head, " \t\r\n")
	if bytes.HasPrefix(head, []byte("<svg")) {
		return true
	}
	return (bytes.HasPrefix(head, []byte("<?xml")) || bytes.HasPrefix(head, []byte("<!"))) && bytes.Contains(head, []byte("<svg"))
}
