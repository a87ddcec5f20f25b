package base

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// HookID begins the ids of calls of agents whose hooks have none: equal calls of a session share it.
func HookID(tool string, hash pool.Hash) string {
	sum := sha256.Sum256(append([]byte(tool+"\x00"), hash[:]...))
	return fmt.Sprintf("hook-%x-", sum[:10])
}

// HookName names what a session's message has to have to be the call that a hook brought: the provider's id, or of agents without ids the tool and arguments.
func HookName(rec *record.CallRecord) string {
	if rec.Gate.Ordinal > 0 {
		return HookID(rec.Tool, rec.Gate.Hash)
	}
	return rec.CallID
}

// Outlived sets the state of a hook's call of which its session has a result.
func Outlived(rec *record.CallRecord, r *pool.Result, now pool.Time) {
	d := record.Decision{At: now, From: StateOf(rec), Decider: pool.Decider{Kind: record.ByAgent, Name: rec.Gate.Agent}, ArgsSHA256: rec.Gate.Hash, Reason: "its session has the result"}
	execution := pool.Done
	if r.IsError {
		execution = pool.Failed
	}
	refused := r.IsError || rec.Reason != "" && strings.Contains(r.Text, rec.Reason)
	switch {
	case rec.Execution == pool.Running, rec.Execution == pool.Uncertain, rec.Status == pool.Left && rec.Execution == pool.NotRun:
		rec.Execution = execution
	case rec.Execution != pool.NotRun, refused && (rec.Status == pool.Denied || rec.Status == pool.Withdrawn):
		return
	case refused:
		rec.Status, d.Reason = pool.Withdrawn, "its session went on without it"
	default:
		rec.Status, rec.Execution, rec.Gate.Past, d.Reason = pool.Left, execution, true, "it ran without an answer from here"
	}
	rec.Gate.Waiter = nil
	d.To = StateOf(rec)
	rec.Decisions = append(rec.Decisions, d)
}
