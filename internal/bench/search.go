package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/pool"
)

// prose generates texts that look to an index like those people write: 50,000 words, whose frequency falls about as fast as their rank grows (Zipf's law).
type prose struct {
	zipf  *rand.Zipf
	words []string
}

func newProse() *prose {
	rnd := rand.New(rand.NewPCG(1, 1))
	p := &prose{zipf: rand.NewZipf(rnd, 1.07, 4, 49_999)}
	for range 50_000 {
		var b strings.Builder
		for range 1 + rnd.IntN(4) {
			b.WriteByte("bcdfghjklmnprstvw"[rnd.IntN(17)])
			b.WriteByte("aeiou"[rnd.IntN(5)])
			if rnd.IntN(3) == 0 {
				b.WriteByte("lnrst"[rnd.IntN(5)])
			}
		}
		p.words = append(p.words, b.String())
	}
	return p
}

// text returns about a kilobyte.
func (p *prose) text() string {
	var b strings.Builder
	for b.Len() < 1000 {
		b.WriteString(p.words[p.zipf.Uint64()])
		b.WriteByte(" .,\n"[max(0, rand.IntN(20)-16)])
	}
	return b.String()
}

// needle is a word that only one message has.
const needle = "zyxwvut"

func benchSearch(r *run) []row {
	ctx := context.Background()
	bin, file := program(r), in(r.dir, "search")
	n := r.n(1_000_000)
	p := newProse()
	s := value(chatctx.Open(file, chatctx.Options{Create: true}))
	c := value(s.New(ctx, record.NewContext{Title: "bench"}))
	took := timed(func() {
		for at := 0; at < n; at += 1000 {
			batch := make([]*pool.Message, 1000)
			for i := range batch {
				batch[i] = pool.NewText([]pool.Role{pool.User, pool.Assistant}[i%2], p.text())
			}
			if at == n/2/1000*1000 {
				batch[3].Content[0].Text += " " + needle
			}
			value(c.Append(ctx, "", batch...))
		}
	})
	used := value(s.Maintenance().Stats(ctx)).Used
	base := used - indexBytes(s)
	must(s.Close())
	rows := []row{{fmt.Sprintf("used bytes of the search index, %d messages: to all else", n), fmt.Sprintf("%.2f of %d MB (stored in %s)", float64(used-base)/float64(base), base>>20, took.Round(time.Second)),
		"at most 0.4", float64(used-base) <= 0.4*float64(base)}}
	for _, q := range []struct{ name, word string }{{"a rare word", needle}, {"the commonest word", p.words[0]}, {"a common and a rare word", p.words[1] + " " + p.words[30_000]}, {"a beginning", p.words[20_000][:3] + "*"}, {"no such word", "qqqqq"}} {
		var ours, bare []time.Duration
		for range 20 {
			took, _ := call(bin, file, "search", q.word)
			ours = append(ours, took)
			took, _ = call(bin, file, "version")
			bare = append(bare, took)
		}
		more := percentile(ours, 0.5) - percentile(bare, 0.5)
		rows = append(rows, row{fmt.Sprintf("search for %s in %d messages: more than version", q.name, n), fmt.Sprintf("%.1f ms", float64(more.Microseconds())/1000), "under 50 ms", more < 50*time.Millisecond})
	}
	return rows
}

// indexBytes returns how many bytes the keys and values of the search index take.
func indexBytes(s *chatctx.Store) int64 {
	var total int64
	must(base.Of(s).Engine.View(context.Background(), func(tx kv.Tx) error {
		for _, bucket := range []string{"waiting", "doc", "term"} {
			err := tx.Scan(bucket, kv.Range{}, func(key, value []byte) error {
				total += int64(len(key) + len(value) + 16)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	return total
}
