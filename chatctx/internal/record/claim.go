package record

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/chatctx/chatctx/pool"
)

// ClaimLife is how long a claim lasts without renewal.
const ClaimLife = 60 * time.Second

// Claim says who works on something: a branch's reply or a call. It is dead, and the next program that touches its work settles that, if its process is
// gone from the same host, if that host was restarted (both as far as can be known), or if it was not renewed for ClaimLife.
type Claim struct {
	Token   pool.ID // new for each claim
	PID     int     // 0: no process; the claim ends when it is not renewed
	Host    string
	Boot    string // identifies the boot of the host's kernel and, behind a "/", the namespace of process ids if there are several; "" if unknown
	Program string
	Since   pool.Time
	Renewed pool.Time
	Task    pool.ID   // of a call: the sub-context that answers it, as long as that runs
	Begun   pool.Time // start of the process, on Windows, where nothing else distinguishes boots
	Ticks   int64     // Renewed on a clock that only runs forward and begins with the boot, in microseconds; 0: unknown
	Made    uint64    // of a branch that was made for the answer: the operation that made it. If no answer comes, the branch goes with the claim

	// Unknown has the keys of the stored form that this program does not know.
	Unknown pool.Unknown `cbor:"-" json:"-"`
}

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
func (s *Store) NewClaim() *Claim {
	now, boot := s.Now(), thisBoot
	if s.User != "" {
		boot = anyBoot
	}
	return &Claim{Token: pool.NewID(), PID: os.Getpid(), Host: thisHost, Boot: boot, Program: s.Program, Since: now, Renewed: now, Begun: thisBegun(), Ticks: ticks()}
}

// Renew extends the claim by ClaimLife, for this process.
func (c *Claim) Renew(now pool.Time) { c.Renewed, c.Ticks, c.PID = now, ticks(), os.Getpid() }

// Who names the holder of the claim.
func (c *Claim) Who() string {
	switch {
	case c.Task != (pool.ID{}):
		return "its sub-context " + Short(c.Task)
	case c.PID > 0:
		return fmt.Sprintf("%s, process %d", c.Program, c.PID)
	}
	return c.Program
}

// Dead reports whether nobody holds the claim any more. Of another process of this boot, no wall clock decides that: theirs or ours may be wrong, and is
// set now and then.
func (c *Claim) Dead(now pool.Time) bool {
	if c.Gone() {
		return true
	}
	if c.sameBoot() && c.PID > 0 && c.PID != os.Getpid() && c.Ticks != 0 && ticks() != 0 {
		return ticks()-c.Ticks > ClaimLife.Microseconds()
	}
	return now-c.Renewed > pool.Time(ClaimLife/time.Microsecond)
}

// Gone reports whether the holder's program is known to be gone. On another host or in another container it may still run.
func (c *Claim) Gone() bool {
	boot, _, _ := strings.Cut(c.Boot, "/")
	ourBoot, _, _ := strings.Cut(thisBoot, "/")
	if c.Host == thisHost && boot != ourBoot && boot != "" && ourBoot != "" {
		return true
	}
	return c.sameBoot() && c.PID > 0 && !processAlive(c.PID, c.Begun)
}

// sameBoot reports whether the holder's process ids are this process's, as far as can be known: not between Windows and WSL, or inside and outside of a
// container, where the same id is another process.
func (c *Claim) sameBoot() bool { return c.Host == thisHost && c.Boot == thisBoot }
