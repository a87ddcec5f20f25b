package chatctx

import (
	"fmt"
	"testing"

	"github.com/chatctx/chatctx/pool"
)

// TestContextsWhileTheyChange lists more than some pages while contexts of later pages change, come and go: each is given once.
func TestContextsWhileTheyChange(t *testing.T) {
	for _, orderly := range []bool{false, true} {
		s, err := OpenMemory(Options{})
		if err != nil {
			t.Fatal(err)
		}
		var all []*ChatContext
		for i := range 400 {
			c, err := s.New(t.Context(), NewContext{Title: fmt.Sprint(i)})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
		given := map[ID]int{}
		n := 0
		for info, err := range s.Contexts(t.Context(), ListOptions{Orderly: orderly}) {
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
