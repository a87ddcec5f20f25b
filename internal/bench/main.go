// Command bench measures the performance goals of docs/design.md and prints them as a table of ratios. Both sides of a ratio are measured in the same run on
// the same machine.
//
//	go run .                 all of them; takes some minutes and 4 GB of disk
//	go run . append fork     the named ones
//	go run . -small          a tenth of the sizes, to see that it works
//	go run . -profile F used a profile of the processor's time, for go tool pprof
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// row is a line of the table: what was measured, the result, the goal, and whether it is met.
type row struct {
	work, measured, bar string
	met                 bool
}

// bench is one measurement, with its name on the command line.
type bench struct {
	name string
	run  func(b *run) []row
}

// run is what a measurement works with: a folder of its own, and whether to use a tenth of the sizes.
type run struct {
	dir   string
	small bool
}

func (r *run) n(full int) int {
	if r.small {
		return max(full/10, 10)
	}
	return full
}

var benches = []bench{
	{"append", benchAppend}, {"steps", benchSteps}, {"writers", benchWriters}, {"fork", benchFork}, {"load", benchLoad}, {"used", benchUsed},
	{"sql", benchSQL}, {"million", benchMillion}, {"beside", benchBeside}, {"page", benchPage}, {"import", benchImport}, {"indexed", benchIndexed}, {"session", benchSession}, {"search", benchSearch}, {"body", benchBody}, {"tokens", benchTokens}, {"start", benchStart},
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "busy" { // this program again, as a process that works beside the measured one
		busy(os.Args[2], os.Args[3])
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "measure" {
		measure(os.Args[2:])
		return
	}
	small := flag.Bool("small", false, "a tenth of the sizes")
	profile := flag.String("profile", "", "write a profile of the processor's time to this `file`")
	flag.Parse()
	if *profile != "" {
		f := value(os.Create(*profile))
		must(pprof.StartCPUProfile(f))
		defer pprof.StopCPUProfile()
	}
	for _, b := range benches {
		if flag.NArg() > 0 && !slices.Contains(flag.Args(), b.name) {
			continue
		}
		dir, err := os.MkdirTemp("", "chatctx-bench")
		must(err)
		for _, r := range b.run(&run{dir: dir, small: *small}) {
			verdict := "met"
			if !r.met {
				verdict = "NOT MET"
			}
			fmt.Printf("%-58s %-34s %-30s %s\n", r.work, r.measured, r.bar, verdict)
		}
		must(os.RemoveAll(dir))
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func value[T any](v T, err error) T {
	must(err)
	return v
}

// text returns a kilobyte of words, different ones for each i.
func text(i int) string {
	return strings.Repeat(fmt.Sprintf("word%d and some more to say about it; ", i), 40)[:1024]
}

func message(i int) *pool.Message {
	return pool.NewText([]pool.Role{pool.User, pool.Assistant}[i%2], text(i))
}

func messages(from, n int) []*pool.Message {
	out := make([]*pool.Message, n)
	for i := range out {
		out[i] = message(from + i)
	}
	return out
}

// filled creates a store with one context of n messages, appended in batches.
func filled(file string, n int) (*chatctx.Store, *chatctx.ChatContext) {
	ctx := context.Background()
	s := value(chatctx.Open(file, chatctx.Options{Create: true}))
	c := value(s.New(ctx, record.NewContext{Title: "bench"}))
	for at := 0; at < n; at += 1000 {
		value(c.Append(ctx, "", messages(at, min(1000, n-at))...))
	}
	return s, c
}

// ratio times a and b in turn, as often as runs says. It returns the median, least and greatest of a/b, and the median time of a.
func ratio(runs int, a, b func()) (median, low, high float64, took time.Duration) {
	var all []float64
	var times []time.Duration
	for range runs {
		x, y := timed(a), timed(b)
		all = append(all, float64(x)/float64(y))
		times = append(times, x)
	}
	sort.Float64s(all)
	slices.Sort(times)
	return all[len(all)/2], all[0], all[len(all)-1], times[len(times)/2]
}

func timed(fn func()) time.Duration {
	start := time.Now()
	fn()
	return time.Since(start)
}

func spread(median, low, high float64) string {
	return fmt.Sprintf("%.2f [%.2f..%.2f]", median, low, high)
}

func percentile(all []time.Duration, p float64) time.Duration {
	slices.Sort(all)
	return all[min(int(float64(len(all))*p), len(all)-1)]
}

func in(dir, name string) string { return filepath.Join(dir, name) }
