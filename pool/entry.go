package pool

// Entry is a message at its place on a branch. Its JSON is the message's with the fields of the place beside them.
type Entry struct {
	*Message
	Position int    // from 1
	Parent   ID     // the message before it on this branch; the zero ID for the first
	Turn     string // u1, a1, u2 …
	Session  int    // from 1
	Tags     []string
	Queued   bool // waits for its place until the reply that runs is done; has no Position yet
}
