package base

import (
	"slices"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// ChangedBy returns who approved the call with other arguments, nil if nobody did. Where no decision says it, a file did.
func ChangedBy(c *record.CallRecord) *pool.Decider {
	if c.Effective == nil {
		return nil
	}
	for _, d := range slices.Backward(c.Decisions) {
		if d.To == record.CallState(pool.Approved, pool.NotRun) && d.Arguments != nil {
			return &d.Decider
		}
	}
	return &pool.Decider{Kind: record.ByImport, Said: true}
}

// IsOpen reports whether the call waits, runs, or is uncertain.
func IsOpen(c *record.CallRecord) bool {
	return (&pool.Call{Status: c.Status, Execution: c.Execution}).Open()
}

// IsListed reports whether the call is in the index of unanswered calls: it is open, or its result waits for a branch.
func IsListed(c *record.CallRecord) bool { return IsOpen(c) || c.Result != (pool.ID{}) }

// StateOf returns the call's CallState.
func StateOf(c *record.CallRecord) string { return record.CallState(c.Status, c.Execution) }

// IsApart reports whether the call came from an agent's hook, and no message of its session has it yet: it is on no branch and in no request.
func IsApart(c *record.CallRecord) bool { return c.Gate != nil && c.Home.Segment == 0 }
