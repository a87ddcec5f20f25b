package chatctx

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/chatctx/internal/words"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/pool"
)

// ID names a context, a message or a branch.
type ID = pool.ID

// Message is a message; see package pool.
type Message = pool.Message

// Entry is a message at its place on a branch.
type Entry = pool.Entry

// Options of Open.
type Options struct {
	Create   bool          // make the file when it is not there
	ReadOnly bool          // refuse writes
	Wait     time.Duration // for others that hold the file; 0: 5 s
	IdleHold time.Duration // how long to keep the file for a next use; 0: 2 ms; negative: not at all
	Program  string        // stands on the journal as who did it; "": the executable's name
	By       string        // the person who decides; "": the user's name
	// BeforeStore, if not nil, is called with every text before it is stored, through whatever door it comes, and may change it (redaction) or refuse it with
	// an error. It gets each message, whole or partial. A text that is no message comes as one too: with the zero ID, one text part, and a Kind that says
	// what it is: title, prompt, setting, data (a program's own), edit, summary, digest, reason, arguments, goal, tool (what a tool says
	// of itself), artifact; what Text then gives is stored. Names, keys and patterns do not come, and how a tool is run does not. It runs outside
	// transactions, on several goroutines at once, and may get a text twice.
	BeforeStore func(*Message) error
	// Clock gives the time; nil: the system's. No order depends on it.
	Clock func() time.Time
}

// Store is an open store. Its methods may be called by many goroutines, and other processes may use the same file.
type Store struct {
	db      kv.DB
	program string
	by      string
	before  func(*Message) error
	clock   func() time.Time

	indexing beside
}

// sequential are the buckets whose keys mostly come in order, so that their pages can be filled.
var sequential = []string{"pool", branch.EntryBucket, operationBucket, "artifact", index.DocBucket, index.TermBucket}

// Open opens the store in a file. Errors to test for: ErrNotExist, ErrNotOurs, ErrTooNew, ErrTooOld, ErrDamaged, ErrLocked.
func Open(path string, o Options) (*Store, error) {
	db, err := boltkv.Open(path, boltkv.Options{Create: o.Create, ReadOnly: o.ReadOnly, Wait: o.Wait, IdleHold: o.IdleHold,
		Sequential: sequential, Check: checkFormat, Init: func(tx kv.RwTx) error { return initStore(tx) }})
	if err != nil {
		return nil, err
	}
	s := newStore(db, o)
	if !o.ReadOnly {
		if err := s.resumePurge(context.Background()); err != nil && !errors.Is(err, ErrReadOnly) {
			return nil, errors.Join(err, db.Close())
		}
	}
	return s, nil
}

// OpenMemory makes a store in memory, gone with Close.
func OpenMemory(o Options) (*Store, error) { return OpenDB(memkv.New(), o) }

// OpenDB uses an engine that the caller opened; an empty one becomes a store. Close closes it.
func OpenDB(db kv.DB, o Options) (*Store, error) {
	err := db.View(context.Background(), checkFormat)
	if errors.Is(err, ErrNotOurs) {
		err = db.Update(context.Background(), initEmpty)
	}
	if err != nil {
		return nil, err
	}
	return newStore(db, o), nil
}

func newStore(db kv.DB, o Options) *Store {
	s := &Store{db: db, program: o.Program, by: o.By, before: o.BeforeStore, clock: o.Clock}
	if s.program == "" {
		s.program = filepath.Base(os.Args[0])
	}
	if s.by == "" {
		if u, err := user.Current(); err == nil {
			s.by = u.Username
		}
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	return s
}

func (s *Store) now() pool.Time { return pool.TimeOf(s.clock()) }

// Close ends the use of the store. Everything that had returned without an error is durable already.
func (s *Store) Close() error {
	s.indexing.close()
	return s.db.Close()
}

// Program is what stands on the journal as who did it, By the person who decides.
func (s *Store) Program() string { return s.program }

// By is the person in whose name this store decides.
func (s *Store) By() string { return s.by }

// DB is the engine. What is written to it past this package is nobody's promise.
func (s *Store) DB() kv.DB { return s.db }

// The names in the meta bucket.
var (
	metaFormat   = []byte("format")
	metaStore    = []byte("store")
	metaCreated  = []byte("created")
	metaCurrent  = []byte("current")
	metaSettings = []byte("settings")
	metaJournal  = []byte("journal")
)

// checkFormat says whether a database is a store of a version that this program reads.
func checkFormat(tx kv.Tx) error {
	version, err := formatOf(tx)
	switch {
	case err != nil:
		return err
	case version > FormatVersion:
		return fmt.Errorf("%w: its format is %d, this program reads up to %d: update chatctx", kv.ErrTooNew, version, FormatVersion)
	case version < OldestVersion:
		return fmt.Errorf("%w: its format is %d, this program reads %d and later: export it with the chatctx that wrote it", kv.ErrTooOld, version, OldestVersion)
	}
	return nil
}

func initEmpty(tx kv.RwTx) error {
	for _, bucket := range []string{metaBucket, contextBucket, pool.Bucket} {
		err := tx.Scan(bucket, kv.Range{}, func(_, _ []byte) error {
			return fmt.Errorf("%w: it is a database of another program", kv.ErrNotOurs)
		})
		if err != nil {
			return err
		}
	}
	return initStore(tx)
}

// initStore writes the marks of a new store.
func initStore(tx kv.RwTx) error {
	id := pool.NewID()
	created, err := json.Marshal(time.Now().UTC().Format(time.RFC3339))
	if err != nil {
		return err
	}
	for _, p := range []struct{ key, value []byte }{
		{metaFormat, fmt.Append(nil, FormatVersion)}, {metaStore, id[:]}, {metaCreated, created},
	} {
		if err := tx.Put(metaBucket, p.key, p.value); err != nil {
			return err
		}
	}
	return index.Save(tx, index.New(words.Version, false))
}

// Settings are the defaults that all contexts of the store share.
func (s *Store) Settings(ctx context.Context) (map[string]json.RawMessage, error) {
	var out map[string]json.RawMessage
	err := s.db.View(ctx, func(tx kv.Tx) (err error) {
		out, err = storeSettings(tx)
		return err
	})
	return out, err
}

func storeSettings(tx kv.Tx) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	_, err := getRecord(tx, metaBucket, metaSettings, &out)
	return out, err
}

// SetSettings sets the store's defaults; a null value takes a key away.
func (s *Store) SetSettings(ctx context.Context, set map[string]json.RawMessage) (*Committed, error) {
	if err := s.values("setting", &set); err != nil {
		return nil, err
	}
	return s.storeOperation(ctx, "config", func(t *storeTxn) error {
		have, err := storeSettings(t.tx)
		if err != nil {
			return err
		}
		merged, changed, err := mergeSettings(have, set)
		if err != nil || !changed {
			return err
		}
		return t.put(metaSettings, merged)
	})
}

// mergeSettings gives settings with some set; a null value takes a key away.
func mergeSettings(have, set map[string]json.RawMessage) (map[string]json.RawMessage, bool, error) {
	out := make(map[string]json.RawMessage, len(have)+len(set))
	for k, v := range have {
		out[k] = v
	}
	changed := false
	for k, v := range set {
		if k == "" || !json.Valid(v) {
			return nil, false, invalid("the setting %q with the value %q: a value is JSON", k, v)
		}
		if string(v) == "null" {
			_, had := out[k]
			changed = changed || had
			delete(out, k)
			continue
		}
		changed = changed || !bytes.Equal(out[k], v)
		out[k] = bytes.Clone(v)
	}
	if len(out) == 0 {
		out = nil
	}
	return out, changed, nil
}

// Artifact reads an artifact's bytes and media type. ErrNotFound where there is none of that hash.
func (s *Store) Artifact(ctx context.Context, h pool.Hash) (data []byte, mediaType string, err error) {
	err = s.db.View(ctx, func(tx kv.Tx) error {
		has, err := pool.HasArtifact(tx, h)
		if err != nil {
			return err
		}
		if !has {
			return NotFound("artifact", fmt.Sprintf("%x", h[:]))
		}
		data, mediaType, err = pool.Artifact(tx, h)
		data = bytes.Clone(data)
		return err
	})
	return data, mediaType, err
}

// PutArtifact stores bytes under their hash. What nothing refers to after a day is collected by gc.
func (s *Store) PutArtifact(ctx context.Context, data []byte, mediaType string) (h pool.Hash, err error) {
	if textual(mediaType) && utf8.Valid(data) {
		text := string(data)
		if err := s.texts("artifact", &text); err != nil {
			return h, err
		}
		data = []byte(text)
	}
	err = s.db.Update(ctx, func(tx kv.RwTx) (err error) {
		if h, err = pool.PutArtifact(tx, data, mediaType); err != nil {
			return err
		}
		return tx.Put(looseBucket, h[:], binary.BigEndian.AppendUint64(nil, uint64(s.now())))
	})
	return h, err
}

// textual reports whether contents of a media type are text.
func textual(mediaType string) bool {
	return strings.HasPrefix(mediaType, "text/") || strings.HasPrefix(mediaType, "application/json")
}
