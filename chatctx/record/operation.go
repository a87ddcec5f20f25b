package record

import "github.com/chatctx/chatctx/pool"

// Operation is an entry of a journal.
type Operation struct {
	ID       string    `json:"operation"` // a number, after an s for the store's
	At       pool.Time `json:"at" empty:"null"`
	What     string    `json:"what"`                 // append, fork, edit …
	By       string    `json:"by"`                   // program
	User     string    `json:"user,omitempty"`       // on a server: the server's user, a slash, and the user who had started the program
	Undone   bool      `json:"undone"`               // it is not in force: it was undone, or removed in the end all that it had made
	Context  pool.ID   `json:"context" empty:"null"` // zero: the store's
	Branches []string  `json:"branches"`
	Undoes   string    `json:"undoes" empty:"null"` // the operation that this one undid or, if that was an undo, redid; "": none
	// About has the first words of the operation's subject: the first message that it put on a branch or took off, the title of a conversation, the name of
	// a tag, tool, rule or token. Changed has the values that it replaced. Both are read from the records as they are now, so they lack what is gone. They
	// are empty in the result of an undo.
	About   string    `json:"about" empty:"null"`
	Changed []Changed `json:"changed"`
}

// Changed is a value that an operation replaced.
type Changed struct {
	// Of is title, name, branch, system, prompt, labels, mark, summary, session from, digests, pruned up to, or the name of a setting.
	Of string `json:"of"`
	// From and To are the first words of the values; both are "" for a setting whose values must not be shown.
	From string `json:"from" empty:"null"`
	To   string `json:"to" empty:"null"`
}
