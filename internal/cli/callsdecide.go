package cli

import (
	"time"

	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
)

func init() { lookGroups = append(lookGroups, decisionLooks) }

func decisionLooks() map[string]look {
	return map[string]look{
		"calls.approve": decisions("approved", func(r *run, in *operation.Approving) error {
			if in.Arguments != nil && len(in.Calls) != 1 {
				return usagef("--arguments goes with one call only")
			}
			return r.checkSeveral(&in.Several, &in.Deciding)
		}),
		"calls.deny":   decisions("denied", func(r *run, in *operation.Denying) error { return r.checkSeveral(&in.Several, &in.Deciding) }),
		"calls.cancel": decisions("cancelled", func(_ *run, in *operation.Cancelling) error { return checkDeciding(&in.Deciding) }),
	}
}

// decisions is the look of decisions about calls.
func decisions[In any](done string, check func(*run, *In) error) look {
	l := preparing(check, as(func(r *run, _ *In, v contract.Call) { r.printf("%s %s %s\n", done, callName(v.Call), clean(v.Tool)) }))
	l.then = func(r *run, in, out any) error {
		d := out.(operation.Decided)
		for _, err := range d.Passed {
			r.note("%s", clean(err.Error()))
		}
		for _, done := range d.Last {
			if done.Operation != "" {
				r.note("undo with: %s", r.undoOf(done))
			}
		}
		return nil
	}
	l.none = func(r *run, in any) {
		several, ok := in.(interface{ OnBranchAlone() bool })
		r.note("no call waits for a decision%s", map[bool]string{true: " on this branch; --everywhere looks at all"}[ok && several.OnBranchAlone()])
	}
	return l
}

// checkSeveral refuses what does not select calls.
func (r *run) checkSeveral(in *operation.Several, who *operation.Deciding) error {
	if err := checkDeciding(who); err != nil {
		return err
	}
	switch {
	case in.Everywhere && !in.Selects():
		return usagef("--everywhere needs --waiting or --matching")
	case in.Selects() && len(in.Calls) > 0:
		return usagef("%s takes calls, or --waiting or --matching", r.name)
	case !in.Selects() && len(in.Calls) == 0:
		return &usageError{r.name + " needs CALL", "usage: chatctx " + r.name + " CALL…, or --waiting or --matching PATTERN; chatctx calls ls lists them"}
	}
	return nil
}

func checkDeciding(in *operation.Deciding) error {
	if err := validText(in.By); err != nil {
		return err
	}
	return validText(in.Reason)
}

// readExpiry finds the time at which calls expire.
func readExpiry(_ *run, in *operation.Expiring) error {
	if in.In == nil || *in.In < 0 {
		return usagef("--in takes a time from now: 10m, 24h")
	}
	if *in.In > 0 {
		at := time.Now().Add(*in.In)
		in.At = &at
	}
	return nil
}
