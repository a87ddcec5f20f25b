//go:build linux

// Command cluster kills and freezes the leader of a PostgreSQL cluster while programs append and decide, and counts what became of what they were told.
//
//	go run ./internal/cluster                                  5 kills, 3 freezes, 8 programs: some ten minutes
//	go run ./internal/cluster -kills 1 -freezes 1 -programs 2  a trial
//
// It starts etcd and three nodes, each with Patroni and a PostgreSQL server, in a temporary folder: synchronous_mode and synchronous_mode_strict, fsync on, ports of 127.0.0.1. Programs that
// embed the library open the store with a URL of all three hosts and target_session_attrs=read-write. Each appends to a conversation of its own, every fourth time a tool call, and denies calls
// of all, for which they race. A strike ends all processes of the leader's node with SIGKILL, or stops them with SIGSTOP until the programs write under another one; then the node comes back,
// and the next strike waits until the cluster is whole.
//
// At the end each change that was acknowledged has to be there once, in its program's order, and `check` must find nothing: otherwise the exit code is 1. A change of unknown outcome
// (kv.ErrUnknownOutcome) may be there or not. Every process it started ends with it, also where it is killed.
//
// It needs Linux, PostgreSQL, Patroni and etcd (Debian: apt-get install --no-install-recommends postgresql patroni etcd-server). As root it runs the servers as the user postgres.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	switch {
	case len(os.Args) == 3 && os.Args[1] == "keep":
		keep(os.Args[2])
		return
	case len(os.Args) == 4 && os.Args[1] == "write":
		exit(write(os.Args[2], os.Args[3]))
	}
	kills := flag.Int("kills", 5, "how often the leader is killed")
	freezes := flag.Int("freezes", 3, "how often the leader is frozen")
	programs := flag.Int("programs", 8, "how many programs write")
	pause := flag.Duration("pause", 10*time.Second, "time of writing before each strike and after the last")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c, err := newCluster()
	if err == nil {
		if err = c.trial(ctx, *programs, *kills, *freezes, *pause); err != nil {
			c.showLogs()
		}
		c.close()
	}
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (c *cluster) trial(ctx context.Context, programs, kills, freezes int, pause time.Duration) error {
	if err := c.start(ctx); err != nil {
		return err
	}
	t := &tally{stored: map[string]int{}, unknown: map[string]bool{}}
	names, err := c.makeStore(ctx, programs)
	if err != nil {
		return err
	}
	end, err := c.startPrograms(names, t)
	if err != nil {
		return err
	}
	for i := range max(kills, freezes) {
		for _, strike := range []struct {
			do    func(context.Context, *tally) error
			times int
		}{{c.kill, kills}, {c.freeze, freezes}} {
			if i >= strike.times {
				continue
			}
			if err := wait(ctx, pause); err != nil {
				return err
			}
			if err := strike.do(ctx, t); err != nil {
				return err
			}
		}
	}
	if err := wait(ctx, pause); err != nil {
		return err
	}
	end()
	return c.compare(ctx, names, t)
}

func (c *cluster) kill(ctx context.Context, t *tally) error {
	return c.strike(ctx, t, "killed", killAll, func(n *node) error { return n.start() })
}

func (c *cluster) freeze(ctx context.Context, t *tally) error {
	return c.strike(ctx, t, "frozen", stopAll, func(n *node) error { continueAll(n.dir); return nil })
}

// strike takes the leader away, waits until the programs write under another one, and gives it back.
func (c *cluster) strike(ctx context.Context, t *tally, what string, away func(dir string) error, back func(*node) error) error {
	old := c.leader()
	if old == nil {
		return fmt.Errorf("the leader is gone before it was to be %s", what)
	}
	t.beginGap()
	if err := away(old.dir); err != nil {
		return err
	}
	elected, err := await(ctx, "another node leads", func() bool { n := c.leader(); return n != nil && n != old })
	if err != nil {
		return err
	}
	before := t.count()
	flows, err := await(ctx, "the programs write again", func() bool { return t.count() >= before+200 })
	if err != nil {
		return err
	}
	if err := back(old); err != nil {
		return err
	}
	whole, err := await(ctx, "the cluster is whole again", c.whole)
	fmt.Printf("%s %s: another leader after %s, 200 changes after %s more, whole after %s more; the longest time without a change %s\n",
		old.name, what, elected, flows, whole, t.endGap().Round(100*time.Millisecond))
	return err
}

// await waits until something is so and says how long that took.
func await(ctx context.Context, what string, is func() bool) (took time.Duration, err error) {
	for begin := time.Now(); ; {
		switch took = time.Since(begin).Round(100 * time.Millisecond); {
		case is():
			return took, nil
		case took > 3*time.Minute:
			return took, fmt.Errorf("three minutes went by before %s", what)
		}
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return took, err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
