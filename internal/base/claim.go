package base

import (
	"os"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// ClaimLife is how long a claim lasts without renewal.
const ClaimLife = 60 * time.Second

var (
	thisHost = hostName()
	thisBoot = bootID()
)

func hostName() string {
	name, _ := os.Hostname()
	return strings.ToValidUTF8(name, "\uFFFD")
}

// anyBoot is the Boot of claims in a store on a server. There, names of hosts and ids of processes mean nothing, so a claim lasts until it is not renewed.
const anyBoot = "/server"

// NewClaim returns a new claim of this process.
func (s *Store) NewClaim() *record.Claim {
	now, boot := s.Now(), thisBoot
	if s.User != "" {
		boot = anyBoot
	}
	return &record.Claim{Token: pool.NewID(), PID: os.Getpid(), Host: thisHost, Boot: boot, Program: s.Program, Since: now, Renewed: now, Begun: thisBegun(), Ticks: ticks()}
}

// Renew extends a claim by ClaimLife, for this process.
func Renew(c *record.Claim, now pool.Time) { c.Renewed, c.Ticks, c.PID = now, ticks(), os.Getpid() }

// Dead reports whether nobody holds a claim any more. Of another process of this boot, no wall clock decides that: theirs or ours may be wrong, and is
// set now and then.
func Dead(c *record.Claim, now pool.Time) bool {
	if HolderGone(c) {
		return true
	}
	if sameBoot(c) && c.PID > 0 && c.PID != os.Getpid() && c.Ticks != 0 && ticks() != 0 {
		return ticks()-c.Ticks > ClaimLife.Microseconds()
	}
	return now-c.Renewed > pool.Time(ClaimLife/time.Microsecond)
}

// HolderGone reports whether the holder's program is known to be gone. On another host or in another container it may still run.
func HolderGone(c *record.Claim) bool {
	boot, _, _ := strings.Cut(c.Boot, "/")
	ourBoot, _, _ := strings.Cut(thisBoot, "/")
	if c.Host == thisHost && boot != ourBoot && boot != "" && ourBoot != "" {
		return true
	}
	return sameBoot(c) && c.PID > 0 && !processAlive(c.PID, c.Begun)
}

// sameBoot reports whether the holder's process ids are this process's, as far as can be known: not between Windows and WSL, or inside and outside of a
// container, where the same id is another process.
func sameBoot(c *record.Claim) bool { return c.Host == thisHost && c.Boot == thisBoot }

// Held reports whether somebody holds a claim; nobody holds nil.
func Held(c *record.Claim, now pool.Time) bool { return c != nil && !Dead(c, now) }
