package care

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/leftover"
)

// Trial calls do with a store that shows s and keeps what do changes to itself, in a temporary file that is removed afterwards.
func Trial(s *base.Store, do func(*base.Store) error) (err error) {
	dir, err := os.MkdirTemp("", leftover.Name("trial"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	top, err := boltkv.Open(filepath.Join(dir, "changes"), boltkv.Options{Create: true, Fleeting: true, IdleHold: time.Minute, Sequential: sequential})
	if err != nil {
		return err
	}
	trial := *s
	trial.DB, trial.Indexing, trial.Hints = kv.Layered(s.DB, top), base.Idle(), &base.Hints{}
	trial.Engine, trial.Sweeping, trial.Unfinished = trial.DB, nil, nil
	defer func() { err = errors.Join(err, trial.Close()) }()
	return do(&trial)
}
