package page_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// BenchmarkPage measures a store of 10,000 conversations, one of which has a branch of 10,000 messages and 300 branches: the first view, scrolling, a key in search.
func BenchmarkPage(b *testing.B) {
	r := open(b, func(s *chatctx.Store) {
		for i := range 10_000 {
			if _, err := s.New(b.Context(), record.NewContext{Title: fmt.Sprintf("Conversation %d", i), Messages: []*chatctx.Message{user(fmt.Sprintf("word%d and others", i))}}); err != nil {
				b.Fatal(err)
			}
		}
		messages := make([]*chatctx.Message, 10_000)
		for i := range messages {
			messages[i] = pool.NewText([]pool.Role{pool.User, pool.Assistant}[i%2], fmt.Sprintf("Message %d. %s", i+1, strings.Repeat("word ", 5+i*7%400)))
		}
		c, err := s.New(b.Context(), record.NewContext{Title: "Long", Messages: messages})
		if err != nil {
			b.Fatal(err)
		}
		for i := range 300 {
			batch := c.Begin("main")
			batch.Fork(fmt.Sprintf("way-%d", i), chatctx.ForkOptions{At: record.Ref(fmt.Sprintf("@%d", 1+i*33)), Stay: true})
			if _, err := batch.Commit(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	r.sees("Message 10000.")
	for b.Loop() {
		b.ReportMetric(value[float64](r, `new Promise((yes) => { const begun = performance.now(); app.list.show().then(() => app.conversation.open(app.conversation.context, "main")).then(() => requestAnimationFrame(() => yes(performance.now() - begun))); })`), "ms/view")
		b.ReportMetric(scrolled(r, "Messages"), "ms/frame-p95")
		b.ReportMetric(scrolled(r, "Branches"), "ms/treeframe-p95")
		b.ReportMetric(value[float64](r, `(async () => { const times = [];
			for (const text of ["w", "wo", "wor", "word", "word1", "word12"]) { app.list.input.value = text; const begun = performance.now(); await app.list.show(); await new Promise(requestAnimationFrame); times.push(performance.now() - begun); }
			app.list.input.value = ""; return Math.max(...times); })()`), "ms/search-key")
	}
	b.ReportMetric(value[float64](r, "performance.getEntriesByName('first-contentful-paint')[0].startTime"), "ms/first-paint")
	b.ReportMetric(value[float64](r, "document.querySelectorAll('*').length"), "elements")
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/1e6, "MB-heap")
	b.ReportMetric(float64(m.Sys)/1e6, "MB-memory") // with the memory for creating the store
}

// scrolled scrolls a list by a screen every other frame for 240 frames, and returns the time within which 95 of 100 frames are.
func scrolled(r *reader, list string) float64 {
	return value[float64](r, `new Promise((yes) => { const list = document.querySelector('row-list[aria-label="`+list+`"]'); list.scrollTop = 0; const times = []; let last = performance.now();
		const frame = (now) => { times.push(now - last); last = now; list.scrollTop += 260; if (times.length < 240) return requestAnimationFrame(frame); times.sort((a, b) => a - b); yes(times[Math.floor(times.length * 0.95)]); };
		requestAnimationFrame(frame); })`)
}
