package pool_test

import (
	"bytes"
	"math/rand/v2"
	"mime"
	"net/http"
	"testing"

	"github.com/chatctx/chatctx/pool"
)

// TestSniffAgreesWithHTTP compares what data is with what net/http says, over beginnings of known types that are cut and changed at random. Types
// that net/http does not know are passed over.
func TestSniffAgreesWithHTTP(t *testing.T) {
	own := map[string]bool{"image/avif": true, "image/heic": true, "image/heif": true, "audio/mp4": true, "video/quicktime": true, "image/tiff": true,
		"image/jxl": true, "audio/flac": true, "audio/aac": true, "application/rtf": true, "image/svg+xml": true}
	seeds := []string{"", "words\x1b[1m", "\x00\x01", "<!doctype html>", " \n<HTML ", "<head>", "<script >", "<iframe>", "<h1>", "<div ", "<font>", "<table>", "<a ", "<style>",
		"<title>", "<b>", "<body>", "<br>", "<p>", "<!-- ", "<!-->", "\t<?xml version", "%PDF-1", "%!PS-Adobe-", "\xfe\xffab", "\xff\xfeab", "\xef\xbb\xbfa", "\x00\x00\x01\x00",
		"\x00\x00\x02\x00", "BM", "GIF87a", "GIF89a", "RIFF1234WEBPVP8", "\x89PNG\r\n\x1a\n", "\xff\xd8\xff\xe0", "FORM....AIFF", "ID3", "OggS\x00", "MThd\x00\x00\x00\x06",
		"RIFF\x01\x02\x03\x04AVI ", "RIFF\x01\x02\x03\x04WAVE", "\x00\x00\x00\x18ftypisom\x00\x00\x00\x00mp41mp42", "\x00\x00\x00\x0cftypmp42", "\x1a\x45\xdf\xa3",
		string(make([]byte, 34)) + "LP", "\x00\x01\x00\x00", "OTTO", "ttcf", "wOFF", "wOF2", "\x1f\x8b\x08", "PK\x03\x04", "Rar!\x1a\x07\x00", "Rar!\x1a\x07\x01\x00", "\x00asm"}
	rnd := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	for n := range 200_000 {
		data := []byte(seeds[n%len(seeds)])
		if n >= len(seeds) {
			for range rnd.IntN(3) {
				if len(data) > 0 {
					data[rnd.IntN(len(data))] = byte(rnd.Uint32())
				}
			}
			data = append(data[:rnd.IntN(len(data)+1)], bytes.Repeat([]byte{"a <\x00 m"[rnd.IntN(6)]}, rnd.IntN(520))...)
		}
		got := pool.SniffMediaType(data)
		want, _, err := mime.ParseMediaType(http.DetectContentType(data))
		if err != nil {
			t.Fatal(err)
		}
		if seen[want] = true; got != want && !own[got] && !bytes.HasPrefix(data, []byte("\xff\xfb")) {
			t.Fatalf("%q is %s, net/http says %s", data, got, want)
		}
	}
	if len(seen) < 30 {
		t.Errorf("only %d types were met", len(seen))
	}
}
