package engine

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// Hosted is implemented by engines whose bytes a server keeps: the server's own programs do what a Keeper does for a file.
type Hosted interface {
	// User returns the user for whom the server takes this program.
	User() string
	// Instead returns a sentence that says what to do in place of a Keeper's function: a line to type, without passwords.
	Instead(of kv.Care) string
}

// Guarded is implemented by engines whose Updates avoid scans: the engine scans beforehand, and checks by one record whether the result still holds.
type Guarded interface {
	// Guard sets the function that returns a range's guard: a record that never returns to an earlier value after an Update has changed it together with a
	// record of the range; nil if there is none. The engine itself notes Updates that change a record of the range but not the guard. A Key without a key
	// has no record, only such notes. Guard is called before the database is used, and all programs must use the same function.
	Guard(of func(bucket string, r kv.Range) *kv.Key)
}

// Namer is implemented by engines that tell watchers which keys changed.
type Namer interface {
	// WatchNames is DB.Watch with a function that returns the keys that may have changed since its last call: whole keys, or at least their first 16 bytes.
	// all means that any key may have changed.
	WatchNames(ctx context.Context, bucket string, prefix []byte) (signal <-chan struct{}, changed func() (keys [][]byte, all bool), err error)
}
