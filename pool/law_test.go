package pool_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

func mustEncode(t testing.TB, m *pool.Message) []byte {
	t.Helper()
	b, err := poolstore.Encode(m)
	if err != nil {
		t.Fatalf("Encode: %v", err)
	}
	return b
}

func mustDecode(t testing.TB, b []byte) *pool.Message {
	t.Helper()
	m := &pool.Message{}
	if err := poolstore.Decode(b, m); err != nil {
		t.Fatalf("Decode: %v", err)
	}
	return m
}

func mustJSON(t testing.TB, m *pool.Message) []byte {
	t.Helper()
	b, err := m.AppendJSON(nil)
	if err != nil {
		t.Fatalf("AppendJSON: %v", err)
	}
	return b
}

func TestEveryMessageSurvives(t *testing.T) {
	for seed := range testkit.Seeds(t, 1000) {
		m := newMaker(seed).message()
		if err := m.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		record := mustEncode(t, m)
		lent := bytes.Clone(record)
		got := mustDecode(t, lent)
		clear(lent) // a message takes no memory of its record
		if again := mustEncode(t, got); !bytes.Equal(record, again) {
			t.Fatalf("seed %d: read and written again, the record is\n%x, was\n%x", seed, again, record)
		}
		survivesJSON(t, m)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestEmptyIsNone: a collection that is there and empty is written like one that is not there, wherever it stands.
func TestEmptyIsNone(t *testing.T) {
	id, none := fixedID(1), map[string]json.RawMessage{}
	tests := map[string][2]*pool.Message{
		"provider data": {{ID: id, Meta: pool.Metadata{ProviderData: none}}, {ID: id}},
		"usage":         {{ID: id, Meta: pool.Metadata{Usage: json.RawMessage{}}}, {ID: id}},
		"unknown keys":  {{ID: id, Extra: map[uint64]cbor.RawMessage{}, Meta: pool.Metadata{Extra: map[uint64]cbor.RawMessage{}}}, {ID: id}},
		"lists":         {{ID: id, Content: []pool.Part{}, Calls: []pool.Call{}, AppData: none}, {ID: id}},
		"of a part":     {{ID: id, Content: []pool.Part{{Raw: json.RawMessage{}}}}, {ID: id, Content: []pool.Part{{}}}},
		"of a result":   {{ID: id, Result: &pool.Result{JSON: json.RawMessage{}, Parts: []pool.Part{}}}, {ID: id, Result: &pool.Result{}}},
		"of a source":   {{ID: id, Source: &pool.Source{Raw: []byte{}}}, {ID: id, Source: &pool.Source{}}},
	}
	for name, pair := range tests {
		empty, absent := mustEncode(t, pair[0]), mustEncode(t, pair[1])
		if !bytes.Equal(empty, absent) {
			t.Errorf("%s: empty gives %x, none gives %x", name, empty, absent)
		}
	}
}

// survivesJSON is the law of the JSON: it gives the same record and the same JSON again, also with white space around, and
// from json.Marshal's escapes.
func survivesJSON(t testing.TB, m *pool.Message) {
	t.Helper()
	record, text := mustEncode(t, m), mustJSON(t, m)
	var indented, escaped bytes.Buffer
	if err := json.Indent(&indented, text, "", "\t"); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if bytes.ContainsRune(text, '\n') {
		t.Errorf("more than one line: %s", text)
	}
	json.HTMLEscape(&escaped, text)
	for what, input := range map[string][]byte{"as it is": text, "by json.Marshal": escaped.Bytes(), "indented": indented.Bytes()} {
		var got pool.Message
		if err := json.Unmarshal(input, &got); err != nil {
			t.Errorf("%s: %v in\n%s", what, err, input)
			return
		}
		got.Home = m.Home
		if again := mustJSON(t, &got); !bytes.Equal(text, again) && what == "as it is" {
			t.Errorf("%s: the JSON is\n%s, was\n%s", what, again, text)
		}
		if again := mustEncode(t, &got); !bytes.Equal(record, again) && what == "as it is" {
			t.Errorf("%s: the record is\n%x, was\n%x\nfrom %s", what, again, record, text)
		}
	}
}

// What is stored, read, exported as JSON, imported into an empty store and read there is the same record.
func TestStoreToStore(t *testing.T) {
	big := bytes.Repeat([]byte("long "), 4000)
	for seed := range testkit.Seeds(t, 200) {
		from, to := memkv.New(), memkv.New()
		ctx, m := pool.NewID(), newMaker(seed).message()
		if m.Result != nil {
			m.Result.SHA256 = pool.Hash{}
			m.Result.Text = string(big)
		}
		var record []byte
		update(t, from, func(tx kv.RwTx) error {
			putReferred(t, tx, m)
			if err := poolstore.Put(tx, ctx, m); err != nil {
				return err
			}
			b, err := tx.Get(poolstore.Bucket, append(ctx[:], m.ID[:]...))
			record = bytes.Clone(b)
			return err
		})
		var text []byte
		view(t, from, func(tx kv.Tx) error {
			got, err := poolstore.Get(tx, ctx, m.ID)
			if err == nil {
				text = mustJSON(t, got)
			}
			return err
		})
		var imported pool.Message
		if err := json.Unmarshal(text, &imported); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		update(t, to, func(tx kv.RwTx) error {
			putReferred(t, tx, m)
			if err := poolstore.Put(tx, ctx, &imported); err != nil {
				return err
			}
			b, err := tx.Get(poolstore.Bucket, append(ctx[:], m.ID[:]...))
			if !bytes.Equal(b, record) {
				t.Fatalf("seed %d: another record", seed)
			}
			return err
		})
	}
}

// putReferred writes headers for the artifacts that m refers to, so that Put finds them.
func putReferred(t *testing.T, tx kv.RwTx, m *pool.Message) {
	t.Helper()
	for _, h := range poolstore.Artifacts(m) {
		if err := tx.Put(poolstore.ArtifactBucket, h[:], []byte("there")); err != nil {
			t.Fatal(err)
		}
	}
}

// sealed puts a right checksum behind a body.
func sealed(body []byte) []byte {
	return binary.BigEndian.AppendUint32(bytes.Clone(body), crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

func FuzzDecode(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) { decodeIsSafe(t, body) })
}

// decodeIsSafe holds for any bytes: damage is said to be damage, and what can be read can be written and read again.
func decodeIsSafe(t *testing.T, body []byte) {
	var m pool.Message
	if err := poolstore.Decode(sealed(body), &m); err != nil {
		if !errors.Is(err, kv.ErrDamaged) {
			t.Fatalf("Decode: %v", err)
		}
		return
	}
	record, err := poolstore.Encode(&m)
	if err != nil {
		return // more than a message may have, such as raw JSON that is not UTF-8
	}
	again := mustDecode(t, record)
	if second := mustEncode(t, again); !bytes.Equal(record, second) {
		t.Fatalf("another record:\n%x, was\n%x", second, record)
	}
	if m.Validate() == nil {
		survivesJSON(t, again)
	}
}

func FuzzJSON(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) { jsonIsSafe(t, data) })
}

// jsonIsSafe holds for any bytes: they are refused, or are a message that survives.
func jsonIsSafe(t *testing.T, data []byte) {
	var m pool.Message
	if err := m.UnmarshalJSON(data); err != nil {
		if !errors.Is(err, pool.ErrInvalid) {
			t.Fatalf("UnmarshalJSON: %v", err)
		}
		return
	}
	if m.Validate() == nil {
		survivesJSON(t, &m)
	}
}

func TestSpoiltInput(t *testing.T) {
	for seed := range testkit.Seeds(t, 1000) {
		r := newMaker(seed)
		m := r.message()
		record := mustEncode(t, m)
		decodeIsSafe(t, r.spoil(record[:len(record)-4]))
		jsonIsSafe(t, r.spoil(mustJSON(t, m)))
	}
}

// spoil changes, cuts out or doubles some bytes.
func (r maker) spoil(b []byte) []byte {
	b = bytes.Clone(b)
	for range 1 + r.IntN(3) {
		from := r.IntN(len(b))
		to := min(len(b), from+1+r.IntN(8))
		switch r.IntN(4) {
		case 0:
			b[from] ^= 1 << r.IntN(8)
		case 1:
			b = append(b[:from:from], b[to:]...)
		case 2:
			b = append(b[:to:to], b[from:]...)
		case 3:
			b[from] = `{}[]",:\u0`[r.IntN(10)]
		}
		if len(b) == 0 {
			return []byte{0}
		}
	}
	return b
}

// TestTamperedRecord: one wrong bit anywhere is found, and the error names the message.
func TestTamperedRecord(t *testing.T) {
	m := newMaker(1).message()
	record := mustEncode(t, m)
	for i := range 8 * len(record) {
		spoilt := bytes.Clone(record)
		spoilt[i/8] ^= 1 << (i % 8)
		got := pool.Message{ID: m.ID}
		err := poolstore.Decode(spoilt, &got)
		if !errors.Is(err, kv.ErrDamaged) || !strings.Contains(err.Error(), m.ID.String()) {
			t.Fatalf("bit %d: %v", i, err)
		}
	}
	for n := range record {
		if err := poolstore.Decode(record[:n], &pool.Message{}); !errors.Is(err, kv.ErrDamaged) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	other := pool.Message{ID: pool.NewID()}
	if err := poolstore.Decode(record, &other); !errors.Is(err, kv.ErrDamaged) || !strings.Contains(err.Error(), m.ID.String()) {
		t.Errorf("the record of another message: %v", err)
	}
}

// Records that claim what they do not have, or nest without end, are refused before they cost memory.
func TestHostileRecords(t *testing.T) {
	id := append([]byte{0x01, 0x50}, make([]byte, 16)...)
	tests := map[string][]byte{
		"array of 2^32 parts": append(append([]byte{0xa3}, id...), 0x03, 0x9a, 0xff, 0xff, 0xff, 0xff),
		"string of 2^62":      append(append([]byte{0xa3}, id...), 0x02, 0x7b, 0x40, 0, 0, 0, 0, 0, 0, 0),
		"nesting":             append([]byte{0xa1, 0x18, 0x64}, append(bytes.Repeat([]byte{0x81}, 10_000), 0x01)...),
		"200,000 parts":       append(append(append([]byte{0xa2}, id...), 0x03, 0x9a, 0x00, 0x03, 0x0d, 0x40), bytes.Repeat([]byte{0xa0}, 200_000)...),
		"text as a key":       {0xa1, 0x61, 'a', 0x01},
		"negative key":        {0xa1, 0x20, 0x01},
		"key twice":           {0xa2, 0x02, 0x61, 'a', 0x02, 0x61, 'b'},
		"no map":              {0x01},
		"bad UTF-8":           {0xa1, 0x02, 0x61, 0xff},
		"no length":           {0xbf, 0xff},
	}
	for name, body := range tests {
		if err := poolstore.Decode(sealed(body), &pool.Message{}); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEncodeRefusesWhatCannotBeRead(t *testing.T) {
	tests := map[string]*pool.Message{
		"text":      pool.NewText(pool.User, "\xff"),
		"raw":       {Meta: pool.Metadata{Usage: json.RawMessage("\xff")}},
		"name":      {AppData: map[string]json.RawMessage{"\xff": nil}},
		"parts":     {Content: make([]pool.Part, 100_001)},
		"known key": {Extra: map[uint64]cbor.RawMessage{2: {0x01}}},
		"cut value": {Content: []pool.Part{{Extra: map[uint64]cbor.RawMessage{200: {0x61}}}}},
		"nesting":   {Extra: map[uint64]cbor.RawMessage{200: append(bytes.Repeat([]byte{0x81}, 50), 1)}},
	}
	for name, m := range tests {
		if _, err := poolstore.Encode(m); !errors.Is(err, pool.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
