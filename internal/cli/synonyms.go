package cli

import "sync"

// synonyms are words of other programs for what a command does here. They are only named, never run: what another program promises may not hold here.
var synonyms = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"checkout": "switch", "co": "switch", "goto": "switch", "cd": "use", "open": "use", "select": "use",
		"reset": "rewind", "rollback": "rewind", "truncate": "rewind", "revert": "undo", "amend": "edit", "reword": "edit",
		"commit": "add", "push": "add", "insert": "add", "save": "tag", "bookmark": "tag", "checkpoint": "tag", "star": "pin", "favorite": "pin", "favourite": "pin",
		"remove": "rm", "delete": "rm", "del": "rm", "trash": "rm", "archive": "label add", "unarchive": "label rm", "undelete": "restore", "recover": "restore",
		"history": "log", "messages": "log", "list": "ls", "conversations": "ls", "chats": "ls", "threads": "ls", "dir": "ls", "last": "show", "cat": "show", "view": "show",
		"grep": "search", "find": "search", "reflog": "op log", "operations": "op log", "journal": "op log", "graph": "tree",
		"approve": "calls approve", "deny": "calls deny", "allow": "rules add", "permissions": "rules", "pending": "calls", "review": "calls review",
		"settings": "config", "set": "config", "preferences": "config", "options": "config", "instructions": "system", "persona": "system",
		"regenerate": "retry", "again": "retry", "rerun": "retry", "reask": "retry", "continue": "send --continue", "query": "send", "say": "send", "talk": "chat",
		"rebase": "replay", "cherry-pick": "pick", "create": "new", "make": "new", "duplicate": "fork", "clone": "fork",
		"summarize": "compact", "summarise": "compact", "summary": "compact", "usage": "cost", "price": "cost", "billing": "cost", "info": "status", "whoami": "status", "where": "status",
		"tui": "ui", "server": "serve", "gui": "web", "browser": "web", "doctor": "check", "fsck": "check", "optimize": "vacuum", "mv": "rename", "name": "rename",
		"branches": "branch ls", "tags": "tag ls", "labels": "label ls", "attachments": "artifact", "files": "artifact",
		"load": "import", "download": "export", "dump": "export", "share": "export",
	}
})

// groupSynonyms are such words within groups: label delete, branch rename.
var groupSynonyms = map[string][]string{
	"remove": {"rm"}, "delete": {"rm"}, "del": {"rm"}, "unset": {"rm"}, "list": {"ls"}, "rename": {"mv"}, "move": {"mv"},
	"create": {"add", "start"}, "new": {"add", "start"}, "set": {"add"}, "get": {"show"}, "view": {"show"}, "info": {"show"},
	"accept": {"approve"}, "allow": {"approve"}, "reject": {"deny"}, "refuse": {"deny"}, "exec": {"run"}, "execute": {"run"}, "answer": {"resolve"}, "history": {"log"},
}

// synonym returns the command that a word of another program stands for behind the words of p, "" if none is known.
func (p *parsed) synonym(word string) string {
	if p.command() == nil {
		return synonyms()[word]
	}
	for _, name := range groupSynonyms[word] {
		if findCommand(p.command().subs, name) != nil {
			return name
		}
	}
	return ""
}
