package adapter

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"image"
	_ "image/gif"  // sizes of images
	_ "image/jpeg" // sizes of images
	_ "image/png"  // sizes of images
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/charset"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/pool"
)

// MediaRules say which images and documents a provider accepts. A limit of 0 means no limit.
type MediaRules struct {
	Images     []string // media types
	ImageBytes int      // of an image
	ImageSide  int      // pixels
	Many       int      // in a request with more images than this …
	ManySide   int      // … each may have at most this many pixels on a side
	Documents  []string // media types
	FileBytes  int      // of a document
	URLs       bool     // images may be web addresses
	FileURLs   bool     // documents may be web addresses
	// Own has the beginnings of the addresses of files that the provider itself keeps.
	Own []string
	// InResults means that a result may hold media, InErrors that one with an error may. Otherwise they go into a user message after it.
	InResults, InErrors bool
	Bytes               int // of all images and documents of a request
}

// Media is an image or a document as it is sent: Data of the Type that its content has, or a URL.
type Media struct {
	Kind string // pool.ImagePart or pool.DocumentPart
	Name string
	Type string
	Data []byte
	URL  string

	width, height int    // 0 if unknown
	left          string // why it is left out
	scaled        string // how it was made to fit, "" if it was not changed
}

// newMedia reads a part's bytes and checks them against the rules. For a text document that the rules do not accept it returns the text instead.
func newMedia(d *chatctx.Draft, p *pool.Part, rules *MediaRules) (m *Media, text string) {
	m = &Media{Kind: p.Type, Name: cleanName(p.Name), Type: mediaType(p.MediaType), URL: strings.TrimSpace(p.URL)}
	m.load(d, p)
	if m.left != "" {
		return m, ""
	}
	if m.Data == nil {
		m.checkURL(rules)
		return m, ""
	}
	m.sniff(p.MediaType)
	if strings.HasPrefix(m.Type, "text/") && blank(string(m.Data)) {
		m.left = "it is empty"
		return m, ""
	}
	if m.Kind == pool.DocumentPart && strings.HasPrefix(m.Type, "text/") && !slices.Contains(rules.Documents, m.Type) {
		return m, m.asText()
	}
	if settings.Values(d.Settings).Truth(ScaleImages) && strings.HasPrefix(m.Type, "image/") && len(rules.Images) > 0 {
		m.scaled = m.fit(rules)
	}
	m.check(rules)
	return m, ""
}

// cleanName returns a file's name that is safe in a text and in a field.
func cleanName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r == utf8.RuneError {
			return -1
		}
		return r
	}, name)
	for len(name) > 200 {
		_, n := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-n]
	}
	return strings.TrimSpace(name)
}

// mediaType returns the type without parameters, in lower case.
func mediaType(s string) string {
	s, _, _ = strings.Cut(s, ";")
	return strings.ToLower(strings.TrimSpace(s))
}

func (m *Media) load(d *chatctx.Draft, p *pool.Part) {
	switch {
	case p.Data != nil:
		m.Data = p.Data
	case p.SHA256 != pool.Hash{}:
		if d.Artifact == nil {
			m.left = "its bytes are not at hand"
			return
		}
		data, err := d.Artifact(p.SHA256)
		if err != nil {
			m.left = "its bytes are not in the store"
			return
		}
		m.Data = data
	case strings.HasPrefix(m.URL, "data:"):
		m.fromDataURL()
		return
	case m.URL == "":
		m.left = "it is empty"
		return
	default:
		return
	}
	if m.URL = ""; len(m.Data) == 0 {
		m.left = "it is empty"
	}
}

// fromDataURL sets the bytes and the type from a data URL.
func (m *Media) fromDataURL() {
	head, body, _ := strings.Cut(strings.TrimPrefix(m.URL, "data:"), ",")
	m.URL = ""
	typ, encoded := strings.CutSuffix(head, ";base64")
	if t := mediaType(typ); t != "" {
		m.Type = t
	}
	var err error
	if encoded {
		m.Data, err = base64.StdEncoding.DecodeString(body)
	} else if body, err = url.PathUnescape(body); err == nil {
		m.Data = []byte(body)
	}
	if err != nil || len(m.Data) == 0 {
		m.left = "its data URL cannot be read"
	}
}

func (m *Media) checkURL(rules *MediaRules) {
	for _, own := range rules.Own {
		if strings.HasPrefix(m.URL, own) && m.Type != "" {
			return
		}
	}
	u, err := url.Parse(m.URL)
	switch takes := rules.URLs && m.Kind == pool.ImagePart || rules.FileURLs && m.Kind == pool.DocumentPart; {
	case !takes:
		m.left = "web addresses are not taken"
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.ContainsAny(m.URL, " \t\n\r\"<>\\^`{|}") || !utf8.ValidString(m.URL):
		m.left = "its address is not one of the web"
	}
}

// sniff sets the type by content. A document of an unknown type is text if it reads as text; text of any encoding becomes UTF-8. declared is the media type
// with its charset.
func (m *Media) sniff(declared string) {
	found := mediaType(http.DetectContentType(m.Data))
	text, reads := charset.Decode(m.Data, declared)
	switch {
	case strings.HasPrefix(found, "image/"), found == "application/pdf":
		m.Type = found
	case reads && (strings.HasPrefix(found, "text/") || strings.HasPrefix(m.Type, "text/") || m.Type == ""):
		m.Data = []byte(text.Text)
		if !strings.HasPrefix(m.Type, "text/") {
			m.Type = "text/plain"
		}
	case m.Type == "" || strings.HasPrefix(m.Type, "text/") || strings.HasPrefix(m.Type, "image/") || m.Type == "application/pdf":
		if m.Type = found; strings.HasPrefix(found, "text/") {
			m.Type = "application/octet-stream"
		}
	}
	if strings.HasPrefix(m.Type, "image/") {
		m.width, m.height = sizeOf(m.Data)
	}
}

// asText returns the words of a text document.
func (m *Media) asText() string {
	name := m.Name
	if name != "" {
		name = " " + name
	}
	return "[document" + name + "]\n" + string(m.Data)
}

func (m *Media) check(rules *MediaRules) {
	isImage := strings.HasPrefix(m.Type, "image/")
	if m.Kind == pool.ImagePart && !isImage {
		m.left = "its content is not an image"
		return
	}
	types, limit := rules.Documents, rules.FileBytes
	if isImage {
		m.Kind, types, limit = pool.ImagePart, rules.Images, rules.ImageBytes
	}
	switch {
	case len(types) == 0:
		m.left = "not taken here"
	case !slices.Contains(types, m.Type):
		m.left = m.Type + " is not taken"
	case limit > 0 && len(m.Data) > limit:
		m.left = fmt.Sprintf("%d bytes, the limit is %d", len(m.Data), limit)
	case rules.ImageSide > 0 && max(m.width, m.height) > rules.ImageSide:
		m.left = fmt.Sprintf("%d x %d pixels, the limit is %d", m.width, m.height, rules.ImageSide)
	}
}

// sizeOf reads an image's width and height from its head; it returns 0 if it cannot.
func sizeOf(data []byte) (width, height int) {
	if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
		return c.Width, c.Height
	}
	if len(data) < 30 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WEBP" {
		return 0, 0
	}
	switch string(data[12:16]) {
	case "VP8 ":
		return int(binary.LittleEndian.Uint16(data[26:])) & 0x3fff, int(binary.LittleEndian.Uint16(data[28:])) & 0x3fff
	case "VP8L":
		bits := binary.LittleEndian.Uint32(data[21:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1
	case "VP8X":
		three := func(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
		return three(data[24:]) + 1, three(data[27:]) + 1
	}
	return 0, 0
}
