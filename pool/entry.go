package pool

// Entry is a message at its place on a branch. Its JSON is that of the message plus the fields of the place.
type Entry struct {
	*Message
	Position int    // from 1
	Parent   ID     // the message before it on this branch; the zero ID for the first
	Turn     string // u1, a1, u2 …
	Session  int    // from 1
	Tags     []string
	Queued   bool // the message waits for its place until the running reply is done; it has no Position yet
}
