package record

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/chatctx/chatctx/pool"
)

// ClaimLife is how long a claim holds without being renewed.
const ClaimLife = 60 * time.Second

// Claim says who works on something: a branch's reply, a call. It is dead, and its work is settled by whoever next touches it, when
// the process is gone on the same host or the host was started again, as far as that can be known, or when it was not renewed for ClaimLife.
type Claim struct {
	Token   pool.ID // made anew for each claim
	PID     int     // 0: no process, it ends by not being renewed
	Host    string
	Boot    string // of that host's kernel, behind a "/" what numbers its processes where that is not all of it; "" where there is no way to know
	Program string
	Since   pool.Time
	Renewed pool.Time
	Task    pool.ID   // of a call: the sub-context that answers it, for as long as that runs
	Begun   pool.Time // when the process began, where nothing else tells starts of the machine apart: on Windows
	Made    uint64    // of a branch that was made for the answer: the operation that made it. Where nothing comes, the branch goes with the claim
}

var (
	thisHost = hostName()
	thisBoot = bootID()
)

func hostName() string {
	name, _ := os.Hostname()
	return strings.ToValidUTF8(name, "\uFFFD")
}

// anyBoot stands in the claims on a store that a server keeps: hosts of one name and processes of one number mean nothing there, so a claim holds until it is
// not renewed.
const anyBoot = "/server"

// NewClaim is a claim of this process.
func (s *Store) NewClaim() *Claim {
	now, boot := s.Now(), thisBoot
	if s.User != "" {
		boot = anyBoot
	}
	return &Claim{Token: pool.NewID(), PID: os.Getpid(), Host: thisHost, Boot: boot, Program: s.Program, Since: now, Renewed: now, Begun: thisBegun()}
}

// Who names who holds it.
func (c *Claim) Who() string {
	switch {
	case c.Task != (pool.ID{}):
		return "its sub-context " + Short(c.Task)
	case c.PID > 0:
		return fmt.Sprintf("%s, process %d", c.Program, c.PID)
	}
	return c.Program
}

// Dead reports whether nobody works on it any more.
func (c *Claim) Dead(now pool.Time) bool {
	return now-c.Renewed > pool.Time(ClaimLife/time.Microsecond) || c.Gone()
}

// Gone reports whether its program is known to be gone. One that is on another host, or in another container, may be there.
func (c *Claim) Gone() bool {
	if c.Host != thisHost {
		return false
	}
	boot, numbers, _ := strings.Cut(c.Boot, "/")
	ourBoot, ourNumbers, _ := strings.Cut(thisBoot, "/")
	switch {
	case boot != ourBoot && boot != "" && ourBoot != "":
		return true
	case boot != ourBoot || numbers != ourNumbers:
		return false // by Windows and by WSL, or in and out of a container: the same number is another process there
	}
	return c.PID > 0 && !processAlive(c.PID, c.Begun)
}
