package chatctx

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/pool"
)

// TestContextsWhileTheyChange lists more than some pages while contexts of later pages change, come and go: each is given once. The clock stands still meanwhile, as one that is coarse
// does for a while: nothing but ids tells then what changed later.
func TestContextsWhileTheyChange(t *testing.T) {
	for _, orderly := range []bool{false, true} {
		var at atomic.Int64 // in seconds
		s, err := OpenMemory(Options{Clock: func() time.Time { return time.Unix(1_700_000_000+at.Load(), 0) }})
		if err != nil {
			t.Fatal(err)
		}
		var all []*ChatContext
		for i := range 400 {
			at.Add(1)
			c, err := s.New(t.Context(), record.NewContext{Title: fmt.Sprint(i)})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
		given := map[ID]int{}
		n := 0
		for info, err := range s.Contexts(t.Context(), record.ListOptions{Orderly: orderly}) {
			if err != nil {
				t.Fatal(err)
			}
			given[info.ID]++
			if n++; n%100 == 1 { // the oldest ones, which are not read yet, and one that was given
				for _, c := range []*ChatContext{all[n/100], all[n/100+10], all[399-n/100]} {
					if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, "x")); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		for _, c := range all {
			if given[c.ID] != 1 {
				t.Errorf("orderly %v: a context is given %d times", orderly, given[c.ID])
			}
		}
		checkStore(t, s)
		s.Close()
	}
}

// TestContextsOfADamagedStore lists contexts of which the branch of one cannot be read: whoever wants them all is told, once, and whoever stops before it is asked no more.
func TestContextsOfADamagedStore(t *testing.T) {
	for _, orderly := range []bool{false, true} {
		s, err := OpenMemory(Options{})
		if err != nil {
			t.Fatal(err)
		}
		var all []*ChatContext
		for i := range 3 {
			c, err := s.New(t.Context(), record.NewContext{Title: fmt.Sprint(i)})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
		err = s.at().DB.Update(t.Context(), func(tx kv.RwTx) error {
			rec, _, err := base.GetContext(tx, all[0].ID)
			if err != nil {
				return err
			}
			return tx.Put(branchstore.Bucket, branchstore.Key(all[0].ID, rec.Active), []byte{1, 2, 3})
		})
		if err != nil {
			t.Fatal(err)
		}
		for stop := 1; stop <= 3; stop++ {
			var titles []string
			var failed []error
			for info, err := range s.Contexts(t.Context(), record.ListOptions{Orderly: orderly}) {
				if err != nil {
					failed = append(failed, err)
				} else if titles = append(titles, info.Title); len(titles) == stop {
					break
				}
			}
			if want := []string{"2", "1"}[:min(stop, 2)]; !slices.Equal(titles, want) {
				t.Errorf("orderly %v: %v, and not %v", orderly, titles, want)
			}
			if (stop > 2) != (len(failed) == 1 && errors.Is(failed[0], ErrDamaged)) {
				t.Errorf("orderly %v, stopped after %d: %v", orderly, stop, failed)
			}
		}
		s.Close()
	}
}
