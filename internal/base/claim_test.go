package base

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// ended is the id of a program that ran and is no more.
func ended(t *testing.T) int {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func TestClaimDead(t *testing.T) {
	boot := thisBoot
	defer func() { thisBoot = boot }()
	gone := ended(t)
	for _, c := range []struct {
		name, ours, theirs string
		pid                int
		want               bool
	}{
		{"this process", boot, boot, os.Getpid(), false},
		{"no process", boot, boot, 0, false},
		{"a process that ended", boot, boot, gone, true},
		{"before a new start", "b", "a", os.Getpid(), true},
		{"before a new start, in a container", "b", "a/pid:[1]", os.Getpid(), true},
		{"a container", "a", "a/pid:[1]", gone, false},
		{"another container", "a/pid:[2]", "a/pid:[1]", gone, false},
		{"the same container", "a/pid:[1]", "a/pid:[1]", gone, true},
		{"Windows, seen from WSL", "a", "", gone, false},
		{"WSL, seen from Windows", "", "a", gone, false},
		{"no boot is known", "", "", gone, true},
	} {
		thisBoot = c.ours
		now := pool.Now()
		claim := &record.Claim{PID: c.pid, Host: thisHost, Boot: c.theirs, Since: now, Renewed: now}
		if Dead(claim, now) != c.want {
			t.Errorf("%s is dead: %v", c.name, !c.want)
		}
		if claim.Host = "elsewhere"; Dead(claim, now) {
			t.Errorf("%s, on another host, is dead", c.name)
		}
		late := now + pool.Time(2*ClaimLife/time.Microsecond)
		if !Dead(claim, late) || HolderGone(claim) {
			t.Errorf("%s, on another host and not renewed, is alive, or known to be gone", c.name)
		}
		if claim.Host = thisHost; !Dead(claim, late) || HolderGone(claim) != c.want {
			t.Errorf("%s, not renewed, is alive, or known to be gone: %v", c.name, HolderGone(claim))
		}
	}
}

// TestNoWallClockEndsALivingClaim: of another living process of this boot, only a clock that nobody sets says whether it has renewed its claim.
func TestNoWallClockEndsALivingClaim(t *testing.T) {
	if ticks() == 0 {
		t.Skip("this system has no such clock")
	}
	if !processAlive(os.Getppid(), 0) {
		t.Skip("no other process is known to live: under Wine the parent may be one of Linux")
	}
	now := pool.Now()
	claim := &record.Claim{PID: os.Getppid(), Host: thisHost, Boot: thisBoot, Since: now, Renewed: now, Ticks: ticks()}
	for _, wrong := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		if Dead(claim, now+pool.Time(wrong/time.Microsecond)) {
			t.Errorf("a clock that is wrong by %v ends it", wrong)
		}
		if claim.Renewed = now - pool.Time(wrong/time.Microsecond); Dead(claim, now) {
			t.Errorf("the clock of its program, wrong by %v, ends it", -wrong)
		}
	}
	if claim.Ticks -= 2 * ClaimLife.Microseconds(); !Dead(claim, now) {
		t.Error("a claim that was not renewed lasts")
	}
	Hold(claim, now, pool.Time(time.Hour/time.Microsecond))
	if Dead(claim, now+pool.Time(2*time.Hour/time.Microsecond)) {
		t.Error("a claim for an hour is over")
	}
}
