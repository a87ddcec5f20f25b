package contract

import "github.com/chatctx/chatctx/chatctx/record"

// callOfStep returns the full reference to the call.
func callOfStep(s *record.CallStep) record.CallRef { return record.CallRefTo(s.Message, s.Index) }

// callOfRule returns the reference to the call that the rule is about, "" for none.
func callOfRule(r *record.Rule) record.CallRef { return record.CallRefTo(r.Message, r.Index) }

// callOfTask returns the reference to the call that started the task, "" if none did.
func callOfTask(t *record.Task) record.CallRef { return record.CallRefTo(t.Message, t.Index) }
