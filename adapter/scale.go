package adapter

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"sync"

	_ "golang.org/x/image/webp" // to be scaled down
)

// ScaleImages is the setting that says whether images over a provider's limits are scaled down or left out. Its default is true.
const ScaleImages = "images.scale"

const (
	// mostPixels is how many pixels are decoded at most: a head of a few bytes may promise more than there is memory for.
	mostPixels = 64 << 20
	// jpegQuality is the quality of JPEGs.
	jpegQuality = 85
	// leastSide is the side at which an image is not made smaller still.
	leastSide = 64
)

// side returns the strictest limit of an image's side that can apply to a request of any length, 0 if there is none. An image is always sent as if there were
// many, so that a later image does not change what was sent.
func (r *MediaRules) side() int {
	if r.Many > 0 && r.ManySide > 0 {
		return r.ManySide
	}
	return r.ImageSide
}

// imageBytes returns the size to which an image is scaled down: the limit of one, but at most half of the limit of a request.
func (r *MediaRules) imageBytes() int {
	if half := r.Bytes / 2; half > 0 && (r.ImageBytes == 0 || r.ImageBytes > half) {
		return half
	}
	return r.ImageBytes
}

// fit scales an image down that is over the limits, and says what it did, "" if nothing. The stored part does not change. An image that cannot be decoded stays
// unchanged.
func (m *Media) fit(rules *MediaRules) string {
	side, limit := rules.side(), rules.imageBytes()
	over := side > 0 && max(m.width, m.height) > side || limit > 0 && len(m.Data) > limit
	if !over || m.width == 0 || m.height == 0 || m.width > mostPixels/m.height {
		return ""
	}
	small, ok := scaledImages.get(m.Data, side, limit)
	if !ok {
		return ""
	}
	what := fmt.Sprintf("an image of %d x %d pixels and %d bytes is sent with %d x %d and %d", m.width, m.height, len(m.Data), small.width, small.height, len(small.data))
	m.Data, m.Type, m.width, m.height = small.data, small.typ, small.width, small.height
	return what
}

// scaled is an image that was scaled down.
type scaled struct {
	typ           string
	data          []byte
	width, height int
}

// scaleDown returns a version of an image that fits. The same bytes give the same result on every machine, since it computes with integers only.
func scaleDown(data []byte, side, limit int) (scaled, bool) {
	decoded, format, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return scaled{}, false
	}
	b := decoded.Bounds()
	src := image.NewRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	draw.Draw(src, src.Rect, decoded, b.Min, draw.Src)
	most := max(b.Dx(), b.Dy())
	if side == 0 || side > most {
		side = most
	}
	for ; side >= min(leastSide, most); side = side * 3 / 4 {
		small := area(src, max(1, b.Dx()*side/most), max(1, b.Dy()*side/most))
		if out, ok := encode(small, format, data, limit); ok {
			out.width, out.height = small.Rect.Dx(), small.Rect.Dy()
			return out, true
		}
	}
	return scaled{}, false
}

// encode returns an image in its own format, or as a JPEG if a PNG is too large, and reports whether it is within the limit.
func encode(img *image.RGBA, format string, original []byte, limit int) (scaled, bool) {
	var out bytes.Buffer
	if format != "jpeg" {
		if err := png.Encode(&out, img); err == nil && (limit == 0 || out.Len() <= limit) {
			return scaled{typ: "image/png", data: out.Bytes()}, true
		}
		out.Reset()
		page := image.NewRGBA(img.Rect)
		draw.Draw(page, page.Rect, image.NewUniform(color.White), image.Point{}, draw.Src)
		draw.Draw(page, page.Rect, img, image.Point{}, draw.Over)
		img = page
	}
	if err := jpeg.Encode(&out, img, &jpeg.Options{Quality: jpegQuality}); err != nil {
		return scaled{}, false
	}
	data := out.Bytes()
	if format == "jpeg" {
		data = withSegments(data, original)
	}
	return scaled{typ: "image/jpeg", data: data}, limit == 0 || len(data) <= limit
}

// withSegments copies metadata from one JPEG into another: its orientation and colour profile.
func withSegments(data, from []byte) []byte {
	out := append([]byte(nil), data[:2]...)
	for i := 2; i+4 <= len(from) && from[i] == 0xff && from[i+1] != 0xda; {
		size := int(from[i+2])<<8 | int(from[i+3])
		if size < 2 || i+2+size > len(from) {
			break
		}
		if kind := from[i+1]; kind == 0xe1 || kind == 0xe2 {
			out = append(out, from[i:i+2+size]...)
		}
		i += 2 + size
	}
	return append(out, data[2:]...)
}

// area returns a smaller image, in which each pixel is the mean of the area that it stands for.
func area(src *image.RGBA, w, h int) *image.RGBA {
	sw, sh := src.Rect.Dx(), src.Rect.Dy()
	if w >= sw && h >= sh {
		return src
	}
	dst := image.NewRGBA(image.Rect(0, 0, w, h))
	line, sum := make([]uint64, 4*w), make([]uint64, 4*w)
	total, have := uint64(sw)*uint64(sh), -1
	for y := range h {
		clear(sum)
		for row := y * sh / h; row*h < (y+1)*sh; row++ {
			if row != have { // two rows of the result may share one
				means(line, src.Pix[row*src.Stride:row*src.Stride+4*sw], sw, w)
				have = row
			}
			weight := uint64(min((row+1)*h, (y+1)*sh) - max(row*h, y*sh))
			for i, v := range line {
				sum[i] += v * weight
			}
		}
		for i, v := range sum {
			dst.Pix[y*dst.Stride+i] = uint8((v + total/2) / total)
		}
	}
	return dst
}

// means adds up the pixels of a row, each with its share in those of a row of w pixels.
func means(line []uint64, pix []uint8, sw, w int) {
	clear(line)
	for x := range w {
		for col := x * sw / w; col*w < (x+1)*sw; col++ {
			weight := uint64(min((col+1)*w, (x+1)*sw) - max(col*w, x*sw))
			for c := range 4 {
				line[4*x+c] += uint64(pix[4*col+c]) * weight
			}
		}
	}
}

// scaledImages keeps the most recent scaled images, by the SHA-256 of their originals, since each is in every request of its branch.
var scaledImages = imageCache{most: 64 << 20}

// entrySize is roughly what an entry takes besides its image.
const entrySize = 256

type imageCache struct {
	most int // bytes

	mu    sync.Mutex
	size  int
	byKey map[imageKey]*list.Element
	order list.List // of *cachedImage, the newest first
}

type imageKey struct {
	sum         [sha256.Size]byte
	side, limit int
}

type cachedImage struct {
	key imageKey
	scaled
	ok bool
}

func (c *imageCache) get(data []byte, side, limit int) (scaled, bool) {
	key := imageKey{sha256.Sum256(data), side, limit}
	c.mu.Lock()
	if e := c.byKey[key]; e != nil {
		c.order.MoveToFront(e)
		c.mu.Unlock()
		known := e.Value.(*cachedImage)
		return known.scaled, known.ok
	}
	c.mu.Unlock()
	made, ok := scaleDown(data, side, limit)
	c.put(&cachedImage{key, made, ok})
	return made, ok
}

func (c *imageCache) put(new *cachedImage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = map[imageKey]*list.Element{}
	}
	if c.byKey[new.key] != nil {
		return // another goroutine made it meanwhile
	}
	c.byKey[new.key] = c.order.PushFront(new)
	c.size += len(new.data) + entrySize
	for c.size > c.most {
		last := c.order.Remove(c.order.Back()).(*cachedImage)
		delete(c.byKey, last.key)
		c.size -= len(last.data) + entrySize
	}
}
