package cli

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
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
	if p := r.flagOnly("store", "CHATCTX_STORE"); p != "" {
		line += " --store " + quote(shownStore(p))
	}
	return line + " " + rest
}

// again returns another command line on this command's store, conversation and branch, as they were typed.
func (r *run) again(rest string) string {
	line, takes := r.onStore(rest), flagsOf(rest)
	if c := r.flagOnly("context", "CHATCTX_CONTEXT"); c != "" && takes("context") {
		line += " --context " + quote(c)
	}
	if b := r.branchName(); b != "" && takes("branch") && !strings.Contains(rest, "--branch") {
		line += " --branch " + quote(b)
	}
	return line
}

// undoOf returns the command line that undoes a change.
func (r *run) undoOf(c *chatctx.Committed) string {
	return r.lineAbout("undo "+c.Operation, subject{context: c.Context})
}

// toAsk returns a command line that asks a model to answer what a branch ends with. It names the model if this command line does. In a chat the flags that are implied there
// are removed.
func (r *run) toAsk(rest string, c *chatctx.ChatContext, branchName string) string {
	line := r.lineAbout(rest, subject{c.ID, branchName})
	if r.con.hint != nil {
		return r.con.hint(line)
	}
	asked := r.asked()
	for _, key := range []string{"provider", "model"} {
		var value string
		if json.Unmarshal(asked[key], &value) == nil && !strings.Contains(rest, " --"+key) {
			line += " --" + key + " " + quote(value)
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
		if typed := r.flagOnly("context", "CHATCTX_CONTEXT"); typed != "" && len(r.override) == 0 && r.leadsTo(typed, id) {
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

// flagsOf reports which flags the command of a line takes. An operation is one of a whole conversation: undo of it takes no branch.
func flagsOf(line string) func(name string) bool {
	words := strings.Fields(line)
	c := findCommand(allCommands(), words[0])
	for _, word := range words[1:] {
		sub := findCommand(c.subs, word)
		if sub == nil {
			break
		}
		c = sub
	}
	ofOperation := c.name == "undo" && len(words) > 1 && !strings.HasPrefix(words[1], "-")
	return func(name string) bool {
		is := func(f *flag) bool { return f.name == name }
		return slices.ContainsFunc(c.flags, is) || slices.ContainsFunc(sharedFlags(c.scope), is) && !(ofOperation && name == "branch")
	}
}
