package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// references returns the candidates for a message or a range: tags, branches, and names of the branch's messages. Text before .. or up to an @ stays.
func (r *run) references(last string) []candidate {
	if i := strings.LastIndex(last, ".."); i >= 0 {
		return after(last, "..", r.references(last[i+2:]))
	}
	if name, _, ok := strings.Cut(last, "@"); ok {
		return r.places(name)
	}
	return slices.Concat(r.tagNames(), r.branchNames(), r.messageLabels(), r.messageNames())
}

// places returns the messages of a branch by their place ("" means the command's branch): BRANCH@u1, BRANCH@a1, BRANCH@-1.
func (r *run) places(name string) []candidate {
	on := *r
	if name != "" {
		on.common.Branch = name
	}
	entries := on.newest()
	at := name + "@"
	var list []candidate
	for i, c := range labelled(entries) {
		if i == 0 {
			list = append(list, candidate{at, "the head: " + told(entries[0])})
		}
		if name == "" {
			break // @u1 is no place on the active branch, u1 is
		}
		list = append(list, candidate{at + c.word, c.hint})
	}
	for i, e := range entries {
		if i > 0 && i < 10 {
			list = append(list, candidate{fmt.Sprintf("%s-%d", at, i), told(e)})
		}
	}
	return list
}

// messageLabels returns the labels of the newest turns of the branch.
func (r *run) messageLabels() []candidate { return labelled(r.newest()) }

// labelled returns the labels of turns among entries, the newest first. A label stands for the last message of an answer.
func labelled(entries []*chatctx.Entry) []candidate {
	var list []candidate
	seen := map[string]bool{}
	for _, e := range entries {
		if e.Turn != "" && !seen[e.Turn] {
			list = append(list, candidate{e.Turn, told(e)})
			seen[e.Turn] = true
		}
	}
	return list
}

// told returns the first words of a message with its turn and role.
func told(e *chatctx.Entry) string { return e.Turn + " " + string(e.Role) + ": " + preview(e.Message) }

// newest returns the newest messages of the branch, the newest first. It only reads, and settles nothing.
func (r *run) newest() []*chatctx.Entry {
	c, err := r.conversation()
	if err != nil {
		return nil
	}
	snap, err := c.Snapshot(r.ctx, r.branchName())
	if err != nil {
		return nil
	}
	var list []*chatctx.Entry
	for e, err := range snap.Entries(r.ctx, snap.Len(), max(snap.Len()-manyCandidates, 1)) {
		if err != nil {
			break
		}
		list = append(list, e)
	}
	return list
}

// messageNames returns the ids of the newest messages of the branch.
func (r *run) messageNames() []candidate {
	var list []candidate
	for _, e := range r.newest() {
		list = append(list, candidate{short(e.ID), told(e)})
	}
	return list
}

// callNames returns the calls in the newest messages of the branch with which a command can do something.
func (r *run) callNames(command string) []candidate {
	var list []candidate
	for _, e := range r.newest() {
		for i := range e.Calls {
			if c := &e.Calls[i]; takesCall(command, c) {
				list = append(list, candidate{fmt.Sprintf("%s:%d", short(e.ID), i+1), c.Tool + ", " + string(c.Status)})
			}
		}
	}
	return list
}

// takesCall reports whether a command can do something with a call in its present state.
func takesCall(command string, c *pool.Call) bool {
	switch command {
	case "calls approve", "calls deny", "calls expire", "calls wait":
		return c.Status == pool.Pending
	case "calls cancel", "calls claim", "calls resolve", "calls run":
		return c.Open()
	}
	return true
}
