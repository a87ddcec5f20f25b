package record

import (
	"github.com/chatctx/chatctx/pool"
)

// SearchOptions is a query. A zero field does not narrow it.
type SearchOptions struct {
	// Text has words, "phrases" and beginnings*; a message must have all of them. Case does not count, nor do differences that Unicode folds. Accents do
	// not count either, but messages with the accents of Text come first. Numbers with points between them, such as 1.2.3, also find versions such as
	// v1.2.3, after all other hits.
	Text string
	// Beginnings makes each word of Text match words that begin with it, as if a * followed.
	Beginnings bool
	// Parts makes each word of Text match also the beginning of a part of an identifier, such as http of parseHTTPRequest. It reads all words of the index.
	Parts bool
	// Any makes one word of Text enough, as for a question: first come the messages in which a passage has the most and rarest words. It goes before Best,
	// Beginnings and Parts.
	Any bool
	// Regexp replaces Text. It is matched against each text as it is, so the search reads everything.
	Regexp string
	// Context is a reference to a context; "" means all contexts.
	Context string
	Labels  []string // the context has all of these
	// Folders are names of one folder, in which the context was held: the setting calls.folder, or the folder that an imported file names. A sub-context without
	// a folder was held in that of its parent.
	Folders []string
	Role    pool.Role
	Model   string
	Tool    string // the tool that the message calls or has a result of
	// Since is the earliest time of creation; Until is the time that creation must precede.
	Since, Until pool.Time
	// Trash includes contexts in the trash. Unheld includes messages that no branch holds, for example after a rewind.
	Trash, Unheld bool
	// Best puts those first that have the words most often, where rarer words count more. Without it the last stored come first; of documents stored
	// together, the newest.
	Best bool
	// First names only one of the branches that hold a message: main, if the message was first put there. That mostly needs no reading of the branches'
	// entries.
	First bool
	// Limit is the largest number of hits; 0 means all.
	Limit int
}

// HitBranch is a branch that holds a message, with its position from 1, or a branch whose prompt was found, with position 0.
type HitBranch struct {
	Name     string
	Position int
}

// Hit is a search result.
type Hit struct {
	What     string // message, title or prompt
	Context  pool.ID
	Title    string // of the context
	Trashed  bool
	Message  *pool.Message // nil for titles and prompts
	Branches []HitBranch
	Field    string                 // text, thinking, call, result, summary, file, title, prompt
	Snippet  string                 // the surroundings of the first match, with white space shortened
	Match    struct{ From, To int } // its place in the snippet, in bytes
	Score    float64                // with Best
}
