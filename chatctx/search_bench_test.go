package chatctx

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/words"
)

// BenchmarkReindex makes the index of 20,000 messages of 1 KB and gives the ratios to reading and segmenting the same texts, with our own way through ASCII and with the
// library's alone; the bar is 3.
func BenchmarkReindex(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "chats.db"), Options{Create: true})
	if err != nil {
		b.Fatal(err)
	}
	defer s.at().Close()
	c, err := s.New(b.Context(), record.NewContext{Title: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 1)), 1.07, 4, 50_000)
	for range 20 {
		var texts []string
		for range 1000 {
			var t strings.Builder
			for t.Len() < 1000 {
				fmt.Fprintf(&t, "%x ", zipf.Uint64()*2654435761%1000003)
			}
			texts = append(texts, t.String())
		}
		if _, err := c.Append(b.Context(), "", says(texts...)...); err != nil {
			b.Fatal(err)
		}
	}
	var building, reading, library time.Duration
	read := func(fn func(text string)) time.Duration {
		start := time.Now()
		err := s.at().DB.View(b.Context(), func(tx kv.Tx) error {
			return poolstore.Scan(tx, c.ID, func(_ ID, m *Message, err error) error {
				fn(m.Text())
				return err
			})
		})
		if err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	n := 0
	for b.Loop() {
		start := time.Now()
		if err := find.Reindex(b.Context(), base.Of(s), nil); err != nil {
			b.Fatal(err)
		}
		building += time.Since(start)
		segment := words.NewSegmenter()
		reading += read(func(text string) {
			segment.Each(text, func([]byte, int, int) bool { n++; return true })
		})
		library += read(func(text string) {
			for state := -1; text != ""; n++ {
				_, text, state = uniseg.FirstWordInString(text, state)
			}
		})
	}
	if n == 0 {
		b.Fatal("no words")
	}
	b.ReportMetric(float64(building)/float64(reading), "ratio")
	b.ReportMetric(float64(building)/float64(library), "ratio-library")
}
