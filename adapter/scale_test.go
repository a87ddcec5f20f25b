package adapter

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// picture returns an image with some content.
func picture(w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.SetRGBA(x, y, color.RGBA{uint8(x), uint8(y), uint8(x / 7 * y / 5), 255})
		}
	}
	return img
}

func asPNG(t *testing.T, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asJPEG(t *testing.T, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var strict = &MediaRules{Images: []string{"image/png", "image/jpeg", "image/webp"}, ImageBytes: 60_000, ImageSide: 400, Many: 2, ManySide: 200}

// send returns an image as it would be sent, and the text in its place if it is left out.
func send(data []byte, rules *MediaRules, settings string) *Media {
	d := &chatctx.Draft{Settings: map[string]json.RawMessage{}}
	if settings != "" {
		d.Settings[ScaleImages] = json.RawMessage(settings)
	}
	m, _ := newMedia(d, &pool.Part{Type: pool.ImagePart, Data: data}, rules)
	return m
}

func TestImagesOverTheLimitsAreScaledDown(t *testing.T) {
	noise := picture(190, 190)
	rand.New(rand.NewSource(1)).Read(noise.Pix)
	for i := 3; i < len(noise.Pix); i += 4 {
		noise.Pix[i] = 255
	}
	for name, c := range map[string]struct {
		data          []byte
		typ           string
		width, height int
	}{
		"wide":             {asPNG(t, picture(900, 300)), "image/png", 200, 66},
		"high":             {asPNG(t, picture(3, 1000)), "image/png", 1, 200},
		"photograph":       {asJPEG(t, picture(600, 600)), "image/jpeg", 200, 200},
		"within":           {asPNG(t, picture(200, 100)), "image/png", 200, 100},
		"too many bytes":   {asPNG(t, noise), "image/jpeg", 190, 190},
		"between the two ": {asPNG(t, picture(300, 300)), "image/png", 200, 200}, // within ImageSide, as long as there are few images
	} {
		before := bytes.Clone(c.data)
		m := send(c.data, strict, "")
		if m.left != "" || m.Type != c.typ || len(m.Data) > strict.ImageBytes {
			t.Errorf("%s: %s, %s, %d bytes", name, m.left, m.Type, len(m.Data))
			continue
		}
		config, format, err := image.DecodeConfig(bytes.NewReader(m.Data))
		if err != nil || "image/"+format != c.typ || config.Width != c.width || config.Height != c.height || m.width != c.width || m.height != c.height {
			t.Errorf("%s: %v, %s, %d x %d, want %d x %d", name, err, format, config.Width, config.Height, c.width, c.height)
		}
		if changed := !bytes.Equal(m.Data, before); changed != (m.scaled != "") || !bytes.Equal(c.data, before) {
			t.Errorf("%s: changed %v, said %q", name, changed, m.scaled)
		}
	}
	if m := send(asPNG(t, noise), &MediaRules{Images: strict.Images, Bytes: 120_000}, ""); m.left != "" || m.scaled == "" || len(m.Data) > 60_000 {
		t.Errorf("over half of what all may have: %q, %q, %d bytes", m.left, m.scaled, len(m.Data))
	}
	if m := send(asPNG(t, picture(900, 300)), strict, "false"); m.left == "" || m.scaled != "" {
		t.Errorf("switched off: %q, %q", m.left, m.scaled)
	}
	if m := send([]byte("\x89PNG\r\n\x1a\nbroken"), &MediaRules{Images: strict.Images, ImageBytes: 3}, ""); m.left == "" {
		t.Error("a broken image over the limit is sent")
	}
}

// TestScalingIsDeterministic: the same image gives the same bytes, with and without the cache, on every machine; and the averages are right.
func TestScalingIsDeterministic(t *testing.T) {
	data := asPNG(t, picture(900, 300))
	a, ok := scaleDown(data, 200, 0)
	b, _ := scaledImages.get(data, 200, 0)
	c, _ := scaledImages.get(data, 200, 0)
	if !ok || !bytes.Equal(a.data, b.data) || !bytes.Equal(a.data, c.data) {
		t.Error("the same image gave two")
	}
	sum := sha256.Sum256(area(picture(900, 300), 200, 66).Pix)
	if got, want := hex.EncodeToString(sum[:8]), "a924d6c28b8720d4"; got != want {
		t.Errorf("the pixels are %s, were %s", got, want)
	}
	chess := image.NewRGBA(image.Rect(0, 0, 4, 2))
	for i := range chess.Pix {
		chess.Pix[i] = []uint8{0, 100, 200, 40}[i/4%4]
	}
	if got := area(chess, 2, 1).Pix; got[0] != 50 || got[4] != 120 {
		t.Errorf("means %v, want 50 and 120", got)
	}
	if got := area(chess, 3, 2).Pix; got[0] != 25 || got[4] != 150 || got[8] != 80 { // (0·3+100·1)/4, (100·2+200·2)/4, (200·1+40·3)/4
		t.Errorf("means %v, want 25, 150, 80", got)
	}
}

// TestBombsAreNotDecoded: an image whose header promises more pixels than there is memory for is not decoded.
func TestBombsAreNotDecoded(t *testing.T) {
	data := asPNG(t, picture(1, 1))
	copy(data[16:], []byte{0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff}) // the width and height in its header, with its checksum
	crc := crc32.ChecksumIEEE(data[12:29])
	copy(data[29:], []byte{byte(crc >> 24), byte(crc >> 16), byte(crc >> 8), byte(crc)})
	m := send(data, strict, "")
	if m.width != 65535 || m.left == "" || m.scaled != "" {
		t.Errorf("%d pixels wide: left %q, scaled %q", m.width, m.left, m.scaled)
	}
}

// TestOrientationStays: a photograph's orientation is kept.
func TestOrientationStays(t *testing.T) {
	data := asJPEG(t, picture(600, 300))
	exif := append([]byte{0xff, 0xe1, 0, 10}, "Exif\x00\x00\x01\x02"...)
	data = append(append(bytes.Clone(data[:2]), exif...), data[2:]...)
	m := send(data, strict, "")
	if m.width != 200 || !bytes.Contains(m.Data, exif) {
		t.Errorf("%d x %d, %x", m.width, m.height, m.Data[:20])
	}
	for n := range 40 { // cut anywhere
		withSegments(asJPEG(t, picture(1, 1)), data[:n])
	}
}

// TestImageCache: the newest images are kept, within the cache's limit.
func TestImageCache(t *testing.T) {
	c := imageCache{most: 3*(300+entrySize) + 100}
	for i := range 20 {
		c.put(&cachedImage{imageKey{side: i}, scaled{data: make([]byte, 300)}, true})
	}
	if len(c.byKey) != 3 || c.size != 3*(300+entrySize) || c.order.Len() != 3 || c.byKey[imageKey{side: 19}] == nil {
		t.Errorf("%d images, %d bytes", len(c.byKey), c.size)
	}
}

// TestALaterImageChangesNoEarlierByte: a third image exceeds the limit for two, and changes nothing that was sent before.
func TestALaterImageChangesNoEarlierByte(t *testing.T) {
	rules := &Rules{Provider: "openai", Media: *strict, Tools: Form{Extra: "_-", Max: 64}, IDs: Form{Extra: "_-", Max: 64}, Thinking: func(*pool.Part, *pool.Message) string { return "no" }}
	var sent [][]byte
	for n := 1; n <= 4; n++ {
		d := &chatctx.Draft{}
		for range n {
			d.Messages = append(d.Messages, &chatctx.DraftMessage{Entry: pool.Entry{Message: &pool.Message{ID: pool.NewID(), Role: pool.User, Content: []pool.Part{{Type: pool.ImagePart, Data: asPNG(t, picture(300, 300))}}}}})
		}
		c, err := normalise(d, rules)
		if err != nil {
			t.Fatal(err)
		}
		first := c.Turns[0].Items[0].Media
		if first == nil {
			t.Fatalf("of %d images the first is left out: %s", n, c.Turns[0].Items[0].Text)
		}
		if sent = append(sent, first.Data); !bytes.Equal(sent[0], first.Data) {
			t.Errorf("with %d images the first is another", n)
		}
		if len(d.Notes) == 0 || !strings.Contains(d.Notes[0].What, "300 x 300") {
			t.Errorf("no note says what was done: %v", d.Notes)
		}
	}
}
