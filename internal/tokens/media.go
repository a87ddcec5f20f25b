package tokens

import (
	"bytes"
	"encoding/binary"
	"image"
	_ "image/gif" // sizes are read from each kind that providers take
	_ "image/jpeg"
	_ "image/png"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/chatctx/chatctx/pool"
)

// formula says how a provider counts an image and a page of a document. Its name is part of the key of a kept count.
type formula struct {
	name  string
	image func(width, height int) int
	page  func() int
}

// formulaOf returns the provider's published formula, as read in 2025. If a document's cost is only given as a range, or as that of a page's image and its
// text, the figure is in the middle of that.
func formulaOf(m Model) formula {
	switch m.Family {
	case "anthropic":
		return formula{"claude", claudeImage, func() int { return 3000 }}
	case "gemini":
		if strings.HasPrefix(m.Base, "gemini-1") || strings.HasPrefix(m.Base, "gemini-2") {
			return formula{"gemini2", gemini2Image, func() int { return 258 }}
		}
		return formula{"gemini3", func(int, int) int { return 1120 }, func() int { return 560 }}
	}
	name, count := openaiImage(m.Base)
	return formula{name, count, func() int { return count(1024, 1448) + pageText }}
}

// pageText is the size of a page's text, which is sent beside the page's image.
const pageText = 600

// openaiImage returns the name and the formula of one of OpenAI's models: tiles of 512 pixels, or patches of 32.
func openaiImage(base string) (string, func(w, h int) int) {
	for _, p := range []struct {
		prefix string
		factor float64
	}{{"gpt-4.1-mini", 1.62}, {"gpt-4.1-nano", 2.46}, {"o4-mini", 1.72}, {"gpt-5-mini", 1.62}, {"gpt-5-nano", 2.46}} {
		if strings.HasPrefix(base, p.prefix) {
			return "patch" + strconv.FormatFloat(p.factor, 'g', -1, 64), func(w, h int) int { return patches(w, h, p.factor) }
		}
	}
	first, tile := 85, 170
	switch {
	case strings.HasPrefix(base, "gpt-4o-mini"):
		first, tile = 2833, 5667
	case strings.HasPrefix(base, "o1"), strings.HasPrefix(base, "o3"):
		first, tile = 75, 150
	case strings.HasPrefix(base, "gpt-5"):
		first, tile = 70, 140
	}
	return "tile" + strconv.Itoa(tile), func(w, h int) int { return first + tile*tiles(w, h) }
}

// tiles returns the number of tiles: the image is fitted into 2048 pixels, its short side is brought to 768, and then it is cut into squares of 512.
func tiles(w, h int) int {
	x, y := shrink(float64(w), float64(h), 2048)
	if short := min(x, y); short > 768 {
		x, y = x*768/short, y*768/short
	}
	return ceil(x/512) * ceil(y/512)
}

// patches returns the number of squares of 32 pixels, at most 1536, times the model's factor.
func patches(w, h int, factor float64) int {
	n := ceil(float64(w)/32) * ceil(float64(h)/32)
	return ceil(float64(min(n, 1536)) * factor)
}

// claudeImage returns one token for 750 pixels, after the long edge is brought to 1568, and at most 1600.
func claudeImage(w, h int) int {
	x, y := shrink(float64(w), float64(h), 1568)
	return min(ceil(x*y/750), 1600)
}

// gemini2Image returns 258 for a small image, else 258 for each tile.
func gemini2Image(w, h int) int {
	if w <= 384 && h <= 384 {
		return 258
	}
	unit := min(max(math.Floor(float64(min(w, h))/1.5), 256), 768)
	return 258 * ceil(float64(w)/unit) * ceil(float64(h)/unit)
}

func shrink(x, y, edge float64) (float64, float64) {
	if long := max(x, y); long > edge {
		return x * edge / long, y * edge / long
	}
	return x, y
}

func ceil(f float64) int { return int(math.Ceil(f - 1e-9)) }

// media returns the tokens of an image or a document. If the bytes are not at hand (a URL), data is nil, and it counts an image of 1024 by 1024 or one page.
func (f formula) media(p *pool.Part, data []byte, e Encoding) int {
	if p.Type == pool.ImagePart {
		w, h := imageSize(data)
		return f.image(w, h)
	}
	if strings.HasPrefix(p.MediaType, "text/") || p.MediaType == "application/json" {
		return e.Count(string(data))
	}
	return f.page() * pdfPages(data)
}

func imageSize(data []byte) (int, int) {
	if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil && c.Width > 0 && c.Height > 0 {
		return c.Width, c.Height
	}
	if w, h := webpSize(data); w > 0 {
		return w, h
	}
	return 1024, 1024
}

// webpSize reads the size from the head of a WebP file; it returns 0 for other files.
func webpSize(b []byte) (int, int) {
	if len(b) < 30 || string(b[:4]) != "RIFF" || string(b[8:12]) != "WEBP" {
		return 0, 0
	}
	switch string(b[12:16]) {
	case "VP8 ":
		return int(binary.LittleEndian.Uint16(b[26:])) & 0x3fff, int(binary.LittleEndian.Uint16(b[28:])) & 0x3fff
	case "VP8L":
		v := binary.LittleEndian.Uint32(b[21:])
		return int(v&0x3fff) + 1, int(v>>14&0x3fff) + 1
	case "VP8X":
		return int(b[24]) | int(b[25])<<8 | int(b[26])<<16 + 1, int(b[27]) | int(b[28])<<8 | int(b[29])<<16 + 1
	}
	return 0, 0
}

var (
	pdfPage  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`/Type\s*/Page[^s]`) })
	pdfCount = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`/Count\s+(\d{1,6})`) })
)

// pdfPages returns the number of pages: of the page objects, else the largest count that a page tree names, else one for each 100 KB, since the objects may be
// compressed.
func pdfPages(data []byte) int {
	if n := len(pdfPage().FindAllIndex(data, -1)); n > 0 {
		return n
	}
	most := 0
	for _, m := range pdfCount().FindAllSubmatch(data, -1) {
		n, _ := strconv.Atoi(string(m[1]))
		most = max(most, n)
	}
	if most > 0 {
		return most
	}
	return 1 + len(data)/100_000
}
