package boltkv

import (
	"errors"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// TestOutcome: a failed commit whose meta record can be seen is of unknown outcome, any other stored nothing.
func TestOutcome(t *testing.T) {
	o, err := makeFile(filepath.Join(t.TempDir(), "s.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	var id uint64
	err = o.change(nil, func(_ *rwTx, tx *bolt.Tx) error {
		id = uint64(tx.ID())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	failed := errors.New("failed")
	if err := o.outcome(id, failed); !errors.Is(err, kv.ErrUnknownOutcome) || !errors.Is(err, failed) {
		t.Errorf("the record is there: %v", err)
	}
	if err := o.outcome(id+1, failed); errors.Is(err, kv.ErrUnknownOutcome) || !errors.Is(err, failed) {
		t.Errorf("the record is not there: %v", err)
	}
}
