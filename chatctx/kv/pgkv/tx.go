package pgkv

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/internal/watch"
)

// Pages of a scan begin small, since most scans end early, and grow. An Update begins smaller still: whatever it reads may make it run again.
const (
	viewPage   = 64
	updatePage = 8
	mostRows   = 2048
	pageBytes  = 1 << 20
	manyKeys   = 512
)

// reader is the view that one function of a View has of a session.
type reader struct {
	*session
	page  int
	ended bool
}

func (t *reader) Get(bucket string, key []byte) ([]byte, error) {
	if t.ended {
		return nil, kv.ErrEnded
	}
	if len(key) == 0 || bucket == "" {
		return nil, nil
	}
	return t.get(bucket, key)
}

func (s *session) get(bucket string, key []byte) ([]byte, error) {
	p := place{bucket, string(key)}
	if v, is := s.known.of[p]; is {
		return v, nil
	}
	results, err := s.ask(do(s.db.sql.get, []byte(bucket), key))
	if err != nil {
		return nil, err
	}
	var data []byte
	if rows := results[0].rows; len(rows) > 0 {
		data = rows[0][0]
	}
	s.learn(p, data)
	return data, nil
}

func (s *session) learn(p place, data []byte) {
	s.noteRead(p, data)
	if len(data) <= smallValue {
		s.known.set(p, data, false)
	}
}

// GetMany reads the unknown keys page by page, each page before the callbacks of its keys.
func (t *reader) GetMany(bucket string, keys [][]byte, fn func(i int, value []byte) error) error {
	if t.ended {
		return kv.ErrEnded
	}
	for from := 0; from < len(keys); from += manyKeys {
		page := keys[from:min(from+manyKeys, len(keys))]
		values, err := t.many(bucket, page)
		if err != nil {
			return err
		}
		for i := range page {
			if err := fn(from+i, values[i]); err != nil {
				return unlessStop(err)
			}
		}
	}
	return nil
}

func (s *session) many(bucket string, keys [][]byte) ([][]byte, error) {
	found := map[string][]byte{}
	var ask [][]byte
	for _, key := range keys {
		if v, is := s.known.of[place{bucket, string(key)}]; is {
			found[string(key)] = v
		} else if _, twice := found[string(key)]; !twice && len(key) > 0 {
			found[string(key)] = nil
			ask = append(ask, key)
		}
	}
	if len(ask) > 0 && bucket != "" {
		results, err := s.ask(do(s.db.sql.many, []byte(bucket), byteaArray(ask)))
		if err != nil {
			return nil, err
		}
		maps.Copy(found, s.learnMany(bucket, ask, results[0]))
	}
	values := make([][]byte, len(keys))
	for i, key := range keys {
		values[i] = found[string(key)]
	}
	return values, nil
}

// mostFetched is how many records of a range Fetch reads.
const mostFetched = 512

// Fetch reads records that will be needed, in one round trip.
func (t *reader) Fetch(keys []kv.Key) error {
	if t.ended {
		return kv.ErrEnded
	}
	ask := map[string][][]byte{}
	var buckets []string
	var ranges []kv.Key
	for _, k := range keys {
		switch {
		case k.Range != nil:
			if k.Bucket != "" && t.pages[k.Bucket][rangeName(*k.Range)] == nil {
				ranges = append(ranges, k)
			}
		case t.known.has(place{k.Bucket, string(k.Key)}) || len(k.Key) == 0:
		default:
			if ask[k.Bucket] == nil {
				buckets = append(buckets, k.Bucket)
			}
			ask[k.Bucket] = append(ask[k.Bucket], k.Key)
		}
	}
	var calls []call
	for _, bucket := range buckets {
		calls = append(calls, do(t.db.sql.many, []byte(bucket), byteaArray(ask[bucket])))
	}
	results, err := t.fetch(calls, ranges, mostFetched)
	if err != nil {
		return err
	}
	for i, bucket := range buckets {
		t.learnMany(bucket, ask[bucket], results[i])
	}
	for i, k := range ranges {
		t.keep(k.Bucket, *k.Range, results[len(buckets)+i].rows)
	}
	return nil
}

// fetch asks for records by key, and then for the beginnings of ranges.
func (s *session) fetch(byKey []call, ranges []kv.Key, limit int) ([]result, error) {
	var scans []call
	var guards []place
	direct := !s.aside || len(ranges) == 0
	for _, k := range ranges {
		scans = append(scans, s.scan(k.Bucket, *k.Range, limit))
		of := s.guards(k.Bucket, *k.Range)
		direct = direct || of == nil
		guards = append(guards, of...)
	}
	switch {
	case len(byKey)+len(scans) == 0:
		return nil, nil
	case len(ranges) == 0:
		return s.ask(byKey...)
	case direct:
		return s.askAfter(append(byKey, scans...)...)
	}
	slices.SortFunc(guards, place.compare)
	scanned, read, err := s.scanAside(slices.Compact(guards), scans, byKey)
	return append(read, scanned...), err
}

// learnMany records the answer to a question for some keys.
func (s *session) learnMany(bucket string, keys [][]byte, answer result) map[string][]byte {
	found := map[string][]byte{}
	for _, row := range answer.rows {
		found[string(row[0])] = row[1]
	}
	for _, key := range keys {
		s.learn(place{bucket, string(key)}, found[string(key)])
	}
	return found
}

// page is the beginning of a range.
type page struct {
	rows  [][][]byte
	limit int
	last  []byte // the last key that was read, nil if all were
}

// pageOf makes a page of the rows from the server.
func (s *session) pageOf(bucket string, r kv.Range, rows [][][]byte, limit int) *page {
	p := &page{rows: rows, limit: limit}
	if len(rows) >= limit {
		p.last = rows[len(rows)-1][0]
	}
	p.rows = s.withOwn(bucket, r, rows, p.last)
	return p
}

func rangeName(r kv.Range) string {
	return fmt.Sprintf("%x %x %t %t", r.From, r.To, r.To == nil, r.Reverse)
}

func (s *session) keep(bucket string, r kv.Range, rows [][][]byte) {
	if s.pages == nil {
		s.pages = map[string]map[string]*page{}
	}
	if s.pages[bucket] == nil {
		s.pages[bucket] = map[string]*page{}
	}
	s.pages[bucket][rangeName(r)] = s.pageOf(bucket, r, rows, mostFetched)
}

func (t *reader) Scan(bucket string, r kv.Range, fn func(key, value []byte) error) error {
	if t.ended {
		return kv.ErrEnded
	}
	if bucket == "" {
		return nil
	}
	fetched := t.pages[bucket][rangeName(r)]
	for limit := t.page; r.To == nil || string(r.From) < string(r.To); {
		if fetched == nil {
			rows, err := t.rows(bucket, r, limit)
			if err != nil {
				return err
			}
			fetched = t.pageOf(bucket, r, rows, limit)
		}
		bytes := 0
		for _, row := range fetched.rows {
			bytes += len(row[0]) + len(row[1])
			if err := fn(row[0], row[1]); err != nil {
				return unlessStop(err)
			}
		}
		if fetched.last == nil {
			return nil
		}
		if r.Reverse {
			r.To = fetched.last
		} else {
			r.From = after(fetched.last)
		}
		n := len(fetched.rows)
		limit = min(4*fetched.limit, mostRows, max(1, pageBytes*max(n, 1)/max(bytes, 1)))
		fetched = nil
	}
	return nil
}

// scan returns the call for the first records of a range.
func (s *session) scan(bucket string, r kv.Range, limit int) call {
	reverse := 0
	if r.Reverse {
		reverse = 1
	}
	if r.From == nil {
		r.From = []byte{}
	}
	args := [][]byte{[]byte(bucket), r.From, int4(limit)}
	if r.To != nil {
		return do(s.db.sql.scan[reverse][1], append(args, r.To)...)
	}
	return do(s.db.sql.scan[reverse][0], args...)
}

// rows reads one page of a range.
func (s *session) rows(bucket string, r kv.Range, limit int) ([][][]byte, error) {
	results, err := s.fetch(nil, []kv.Key{kv.In(bucket, r)}, limit)
	if err != nil {
		return nil, err
	}
	return results[0].rows, nil
}

func unlessStop(err error) error {
	if errors.Is(err, kv.ErrStop) {
		return nil
	}
	return err
}

// writer is what one function of an Update sees of a session.
type writer struct{ reader }

func (t *writer) Put(bucket string, key, value []byte) error {
	if t.ended {
		return kv.ErrEnded
	}
	if err := fits(bucket, key, value); err != nil {
		return err
	}
	if value == nil {
		value = []byte{}
	}
	return t.write(bucket, key, value)
}

func (t *writer) Delete(bucket string, key []byte) error {
	if t.ended {
		return kv.ErrEnded
	}
	if bucket == "" || len(key) == 0 {
		return nil
	}
	if v, is := t.known.of[place{bucket, string(key)}]; is && v == nil {
		return nil
	}
	return t.write(bucket, key, nil)
}

// write keeps a change until the commit, a scan, or until it is much.
func (s *session) write(bucket string, key, data []byte) error {
	if s.failed != nil {
		return s.failed
	}
	p := place{bucket, string(key)}
	s.known.set(p, data, true)
	delete(s.pages, bucket)
	s.wrote = append(s.wrote, watch.Key{Bucket: bucket, Key: []byte(p.key)})
	if s.known.waiting > waitingLimit {
		_, err := s.askAfter()
		return err
	}
	return nil
}

func fits(bucket string, key, value []byte) error {
	if err := kv.Fits(bucket, key, value); err != nil {
		return err
	}
	if n := len(bucket) + len(key); n > MaxKey {
		return fmt.Errorf("%w: a key of %d bytes in bucket %s, at most %d", kv.ErrTooLarge, len(key), bucket, MaxKey-len(bucket))
	}
	return nil
}
