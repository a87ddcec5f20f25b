package pgkv

import (
	"errors"
	"fmt"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/internal/watch"
)

// Pages of a scan begin small, since most end early, and grow. An Update begins smaller still: whatever it reads may make it
// run again.
const (
	viewPage   = 64
	updatePage = 8
	mostRows   = 2048
	pageBytes  = 1 << 20
	manyKeys   = 512
)

// reader is what one function of a View sees of a session.
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
	if v := s.known.of[p]; v != nil {
		return v.data, nil
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
	if len(data) <= smallValue {
		s.known.set(p, data, false)
	}
}

// GetMany reads the keys that are not known yet page by page, each before the callbacks of its keys.
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
		if v := s.known.of[place{bucket, string(key)}]; v != nil {
			found[string(key)] = v.data
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
		for _, row := range results[0].rows {
			found[string(row[0])] = row[1]
		}
		for _, key := range ask {
			s.learn(place{bucket, string(key)}, found[string(key)])
		}
	}
	values := make([][]byte, len(keys))
	for i, key := range keys {
		values[i] = found[string(key)]
	}
	return values, nil
}

// Fetch brings records that are going to be read, in one round trip.
func (t *reader) Fetch(keys []kv.Key) error {
	if t.ended {
		return kv.ErrEnded
	}
	ask := map[string][][]byte{}
	var buckets []string
	for _, k := range keys {
		if t.known.of[place{k.Bucket, string(k.Key)}] != nil || k.Bucket == "" || len(k.Key) == 0 {
			continue
		}
		if ask[k.Bucket] == nil {
			buckets = append(buckets, k.Bucket)
		}
		ask[k.Bucket] = append(ask[k.Bucket], k.Key)
	}
	if len(buckets) == 0 {
		return nil
	}
	var calls []call
	for _, bucket := range buckets {
		calls = append(calls, do(t.db.sql.many, []byte(bucket), byteaArray(ask[bucket])))
	}
	results, err := t.ask(calls...)
	if err != nil {
		return err
	}
	for i, bucket := range buckets {
		found := map[string][]byte{}
		for _, row := range results[i].rows {
			found[string(row[0])] = row[1]
		}
		for _, key := range ask[bucket] {
			t.learn(place{bucket, string(key)}, found[string(key)])
		}
	}
	return nil
}

func (t *reader) Scan(bucket string, r kv.Range, fn func(key, value []byte) error) error {
	if t.ended {
		return kv.ErrEnded
	}
	if bucket == "" {
		return nil
	}
	if r.From == nil {
		r.From = []byte{}
	}
	for limit := t.page; r.To == nil || string(r.From) < string(r.To); {
		rows, err := t.rows(bucket, r, limit)
		if err != nil {
			return err
		}
		bytes := 0
		for _, row := range rows {
			bytes += len(row[0]) + len(row[1])
			if err := fn(row[0], row[1]); err != nil {
				return unlessStop(err)
			}
		}
		if len(rows) < limit {
			return nil
		}
		last := rows[len(rows)-1][0]
		if r.Reverse {
			r.To = last
		} else {
			r.From = after(last)
		}
		limit = min(4*limit, mostRows, max(1, pageBytes*len(rows)/max(bytes, 1)))
	}
	return nil
}

// rows reads one page of a range.
func (s *session) rows(bucket string, r kv.Range, limit int) ([][][]byte, error) {
	reverse := 0
	if r.Reverse {
		reverse = 1
	}
	args := [][]byte{[]byte(bucket), r.From, int4(limit)}
	c := do(s.db.sql.scan[reverse][0], args...)
	if r.To != nil {
		c = do(s.db.sql.scan[reverse][1], append(args, r.To)...)
	}
	results, err := s.ask(c)
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
	if v := t.known.of[place{bucket, string(key)}]; v != nil && v.data == nil {
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
	s.wrote = append(s.wrote, watch.Key{Bucket: bucket, Key: []byte(p.key)})
	if s.known.waiting > waitingLimit {
		_, err := s.ask()
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
