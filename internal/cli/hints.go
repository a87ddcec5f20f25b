package cli

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
)

// subject is what a printed command line is about: a conversation, and a branch of it or "".
type subject struct {
	context chatctx.ID
	branch  string
}

// lineAbout returns a command line that is typed next. It names the store, the conversation and the branch wherever the line would work on others without. Every printed
// line about a conversation comes from here or, if it is about what this command was told to work on, from again.
func (r *run) lineAbout(rest string, about subject) string {
	line := r.onStore(rest) + r.contextFlag(about.context)
	if about.branch != "" && !r.isActive(about) {
		line += " --branch " + quote(about.branch)
	}
	return line
}

// onStore returns another command line on this command's store.
func (r *run) onStore(rest string) string {
	line := "chatctx"
	if p := r.typedStore(); p != "" {
		line += " --store " + quote(shownStore(p))
	}
	return line + " " + rest
}

// again returns another command line on this command's store, conversation and branch, as they were typed.
func (r *run) again(rest string) string {
	line, takes := r.onStore(rest), scopeOf(rest)
	if c := r.typedContext(); c != "" && takes >= onContext {
		line += " --context " + quote(c)
	}
	if b := r.branchName(); b != "" && takes == onBranch && !strings.Contains(rest, "--branch") {
		line += " --branch " + quote(b)
	}
	return line
}

// undoOf returns the command line that undoes a change.
func (r *run) undoOf(c *record.Committed) string {
	return r.lineAbout("undo "+c.Operation, subject{context: c.Context})
}

// toAsk returns a command line that asks a model to answer what a branch ends with. It names the model if this command line does. In a chat the flags that are implied there
// are removed.
func (r *run) toAsk(rest string, c *chatctx.ChatContext, branchName string) string {
	line := r.lineAbout(rest, subject{c.ID, branchName})
	if r.con.hint != nil {
		return r.con.hint(line)
	}
	for _, f := range flagWords(r.talks.whom) {
		if name, value, _ := strings.Cut(f, "="); !strings.Contains(rest, " "+name) {
			line += " " + name + " " + quote(value)
		}
	}
	return line
}

// contextFlag returns the flag that leads a line to a conversation: as it was typed for this command if that means the same one, "" if the line works on it without, or for no conversation.
func (r *run) contextFlag(id chatctx.ID) string {
	if id == (chatctx.ID{}) {
		return ""
	}
	if r.con.hint == nil {
		if typed := r.typedContext(); typed != "" && r.leadsTo(typed, id) {
			return " --context " + quote(typed)
		}
		if r.leadsTo(os.Getenv("CHATCTX_CONTEXT"), id) {
			return ""
		}
	}
	return " --context " + short(id)
}

// leadsTo reports whether a reference means a conversation; "" is the store's current one. A command that opened no store leads nowhere.
func (r *run) leadsTo(ref string, id chatctx.ID) bool {
	if r.st == nil {
		return false
	}
	c, err := r.st.Context(context.WithoutCancel(r.ctx), ref)
	return err == nil && c.ID == id
}

// isActive reports whether a line without --branch works on a branch. In a chat it works on the chat's, and the chat removes the flag.
func (r *run) isActive(about subject) bool {
	if r.con.hint != nil || r.st == nil {
		return false
	}
	ctx := context.WithoutCancel(r.ctx)
	c, err := r.st.Context(ctx, about.context.String())
	if err != nil {
		return false
	}
	info, err := c.Info(ctx)
	return err == nil && info.Active == about.branch
}

// scopeOf returns what the command of a line works on. An operation is one of a whole conversation: undo of it takes no branch.
func scopeOf(line string) scope {
	words := strings.Fields(line)
	c := findCommand(allCommands(), words[0])
	for _, word := range words[1:] {
		sub := findCommand(c.subs, word)
		if sub == nil {
			break
		}
		c = sub
	}
	if c.name == "undo" && len(words) > 1 && !strings.HasPrefix(words[1], "-") {
		return onContext
	}
	if slices.ContainsFunc(c.flags, func(f *flag) bool { return f.name == "context" }) { // one of its own
		return onContext
	}
	return c.scope
}
