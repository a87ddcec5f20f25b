package pgkv

import (
	"bytes"
	"crypto/rand"
	"errors"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// An Update avoids scans: PostgreSQL notes each index page that a scan reads, and a transaction that writes there meanwhile has to run again. If a range
// has a guard (engine.Guarded), the transaction steps aside. In one round trip it ends, a reading transaction scans, and it begins again and reads by key
// everything that it had read, with the guard. If all of that is unchanged, and the guard is as the scan saw it, nothing came between, and the Update goes
// on as if it had scanned itself.
//
// A guard is a record that changes with the range. If an Update changes the range without the guard, it writes a stamp beside it, in the bucket without a
// name.
//
// errMoved: something came between a scan and its transaction.

// errMoved: something came between a scan and the transaction that it was for.
var errMoved = errors.New("pgkv: the scanned records have changed meanwhile")

// A transaction that has read much, or has stepped aside often, scans itself, so that what it reads again is not the square of what it reads: mostRead is how
// many bytes it reads again for a scan, mostAgain and timesAgain how many records for all its scans, at least and as a multiple of what it has read.
const (
	mostRead   = 1 << 20
	mostAgain  = 1000
	timesAgain = 4
)

// Guard implements engine.Guarded.
func (d *database) Guard(of func(bucket string, r kv.Range) *kv.Key) { d.guard = of }

// stampOf returns the place of the stamp for changes that leave a guard unchanged.
func stampOf(guard *kv.Key) place { return place{"", guard.Bucket + "/" + string(guard.Key)} }

// guards returns the places that change with a range. It returns none if the transaction must scan itself: it has the table to itself, it erases, or it has
// sent writes, scanned, read much or stepped aside often.
func (s *session) guards(bucket string, r kv.Range) []place {
	if !s.aside || s.hold || s.erases || s.stays || s.readSize > mostRead || s.again > mostAgain+timesAgain*len(s.read) {
		return nil
	}
	guard := s.db.guard(bucket, r)
	if guard == nil {
		return nil
	}
	places := []place{stampOf(guard)}
	if len(guard.Key) > 0 {
		places = append(places, place{guard.Bucket, string(guard.Key)})
	}
	return places
}

// byKey returns the calls that read places, and the places of each call.
func (s *session) byKey(places []place) (calls []call, of [][]place) {
	slices.SortFunc(places, place.compare)
	for len(places) > 0 {
		n := 1
		for n < len(places) && places[n].bucket == places[0].bucket {
			n++
		}
		keys := make([][]byte, n)
		for i, p := range places[:n] {
			keys[i] = []byte(p.key)
		}
		calls, of = append(calls, do(s.db.sql.many, []byte(places[0].bucket), byteaArray(keys))), append(of, places[:n])
		places = places[n:]
	}
	return calls, of
}

// valuesOf returns the values that the calls of byKey returned.
func valuesOf(of [][]place, results []result) map[place][]byte {
	values := map[place][]byte{}
	for i, places := range of {
		for _, p := range places {
			values[p] = nil
		}
		for _, row := range results[i].rows {
			values[place{places[0].bucket, string(row[0])}] = row[1]
		}
	}
	return values
}

// scanAside runs scans in a reading transaction, and more in the one that begins again.
func (s *session) scanAside(guards []place, scans []call, more []call) (scanned, read []result, err error) {
	if s.failed != nil {
		return nil, nil, s.failed
	}
	if scanned, read, err = s.stepAside(guards, scans, more); err != nil {
		s.failed = err
	}
	return scanned, read, err
}

func (s *session) stepAside(guards []place, scans []call, more []call) (scanned, read []result, err error) {
	if s.conn == nil {
		if s.conn, err = s.db.acquire(s.ctx); err != nil {
			return nil, nil, err
		}
	}
	var calls []call
	if s.begun {
		calls = append(calls, do(plain("abort")))
	}
	calls = append(calls, do(s.db.sql.beginView))
	if s.db.pooled {
		calls = append(calls, do(s.db.settingsCall(s.db.wait)))
	}
	seenCalls, seenOf := s.byKey(slices.Clone(guards))
	atScans := len(calls)
	calls = append(append(append(calls, scans...), seenCalls...), do(s.db.sql.commit))
	calls = append(calls, s.head()...)
	again := slices.Clone(guards)
	for p := range s.read {
		if !slices.Contains(guards, p) {
			again = append(again, p)
		}
	}
	s.again += len(again)
	againCalls, againOf := s.byKey(again)
	atAgain := len(calls)
	calls = append(append(calls, againCalls...), more...)
	results, err := s.link().run(s.ctx, s.db.limit(), calls...)
	s.begun = err == nil || code(err) != ""
	if err != nil {
		return nil, nil, err
	}
	seen, is := valuesOf(seenOf, results[atScans+len(scans):]), valuesOf(againOf, results[atAgain:])
	for p, value := range is {
		was, known := s.read[p]
		if guard, isGuard := seen[p]; isGuard && !same(guard, value) || known && !same(was, value) {
			return nil, nil, errMoved
		}
		if !known {
			s.noteRead(p, value)
		}
	}
	return results[atScans:][:len(scans)], results[atAgain+len(againCalls):], nil
}

func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// noteRead remembers what was read by key, for the next scan.
func (s *session) noteRead(p place, data []byte) {
	if !s.aside {
		return
	}
	if s.read == nil {
		s.read = map[place][]byte{}
	}
	if _, twice := s.read[p]; !twice {
		s.read[p] = data
		s.readSize += len(p.bucket) + len(p.key) + len(data)
	}
}

// withOwn merges the transaction's unsent writes into the rows of a scan. last is the last key of the range that was read, nil if all of it was.
func (s *session) withOwn(bucket string, r kv.Range, rows [][][]byte, last []byte) [][][]byte {
	if last != nil && r.Reverse {
		r.From = last
	} else if last != nil {
		r.To = after(last)
	}
	var own [][][]byte
	mine := map[string]bool{}
	for p := range s.known.dirty {
		v := s.known.of[p]
		if p.bucket != bucket || p.key < string(r.From) || r.To != nil && p.key >= string(r.To) {
			continue
		}
		mine[p.key] = true
		if v != nil {
			own = append(own, [][]byte{[]byte(p.key), v})
		}
	}
	if len(mine) == 0 {
		return rows
	}
	rows = append(slices.DeleteFunc(slices.Clone(rows), func(row [][]byte) bool { return mine[string(row[0])] }), own...)
	slices.SortFunc(rows, func(a, b [][]byte) int {
		if r.Reverse {
			a, b = b, a
		}
		return bytes.Compare(a[0], b[0])
	})
	return rows
}

// stamp notes the changes that leave their guards unchanged.
func (s *session) stamp() {
	if s.db.guard == nil || len(s.wrote) == 0 {
		return
	}
	wrote := map[place]bool{}
	for _, k := range s.wrote {
		wrote[place{k.Bucket, string(k.Key)}] = true
	}
	for p := range wrote {
		guard := s.db.guard(p.bucket, kv.Range{From: []byte(p.key), To: after([]byte(p.key))})
		if guard == nil || !s.erases && len(guard.Key) > 0 && wrote[place{guard.Bucket, string(guard.Key)}] {
			continue
		}
		if at := stampOf(guard); !s.known.dirty[at] {
			var id [16]byte
			rand.Read(id[:])
			s.known.set(at, id[:], true)
		}
	}
}
