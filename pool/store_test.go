package pool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// update runs fn in a transaction on db and fails the test with its error.
func update(t testing.TB, db kv.DB, fn func(tx kv.RwTx) error) {
	t.Helper()
	if err := db.Update(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

func view(t testing.TB, db kv.DB, fn func(tx kv.Tx) error) {
	t.Helper()
	if err := db.View(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

func TestLargeContents(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 40_000) // 640,000 bytes: three chunks
	bigJSON := json.RawMessage(`{"a":"` + big + `"}`)
	image := append([]byte("\x89PNG\r\n\x1a\n"), big...)
	tests := map[string]*pool.Message{
		"small text": {Role: pool.ToolRole, Result: &pool.Result{RequestID: "c", Text: "small"}},
		"text":       {Role: pool.ToolRole, Result: &pool.Result{RequestID: "c", Text: big}},
		"JSON":       {Role: pool.ToolRole, Result: &pool.Result{RequestID: "c", JSON: bigJSON}},
		"text and JSON": {Role: pool.ToolRole, Result: &pool.Result{RequestID: "c", JSON: bigJSON,
			Text: big}},
		"text part": {Role: pool.ToolRole, Result: &pool.Result{RequestID: "c", Parts: []pool.Part{
			{Type: pool.TextPart, Text: "short"}, {Type: pool.TextPart, Text: big}}}},
		"image":        {Role: pool.User, Content: []pool.Part{{Type: pool.ImagePart, Data: image, MediaType: "image/png"}}},
		"result image": {Role: pool.ToolRole, Result: &pool.Result{Parts: []pool.Part{{Type: pool.ImagePart, Data: image}}}},
		"long text":    pool.NewText(pool.User, strings.Repeat("a", 20<<20)),
	}
	for name, m := range tests {
		t.Run(name, func(t *testing.T) {
			db := memkv.New()
			defer db.Close()
			ctx := pool.NewID()
			m.ID = pool.NewID()
			before, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			update(t, db, func(tx kv.RwTx) error { return poolstore.Put(tx, ctx, m) })
			if after, _ := json.Marshal(m); !bytes.Equal(before, after) {
				t.Error("Put changed the message")
			}
			view(t, db, func(tx kv.Tx) error {
				got, err := poolstore.Get(tx, ctx, m.ID)
				if err != nil {
					return err
				}
				sameContents(t, tx, m, got)
				return nil
			})
		})
	}
}

// sameContents compares what was stored with what is read: texts are put back, bytes are in the artifact named.
func sameContents(t *testing.T, tx kv.Tx, want, got *pool.Message) {
	t.Helper()
	if got.Text() != want.Text() {
		t.Error("another text")
	}
	sameParts(t, tx, want.Content, got.Content)
	if want.Result == nil {
		return
	}
	if got.Result.Text != want.Result.Text || !bytes.Equal(got.Result.JSON, want.Result.JSON) {
		t.Error("another result")
	}
	sameParts(t, tx, want.Result.Parts, got.Result.Parts)
}

func sameParts(t *testing.T, tx kv.Tx, want, got []pool.Part) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%d parts, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i].Text != want[i].Text {
			t.Errorf("part %d: another text", i)
		}
		if want[i].Data == nil {
			continue
		}
		data, mediaType, err := poolstore.Artifact(tx, got[i].SHA256)
		if err != nil || !bytes.Equal(data, want[i].Data) || mediaType != "image/png" || got[i].Size != int64(len(data)) {
			t.Errorf("part %d: %d bytes of %s, %v", i, len(data), mediaType, err)
		}
	}
}

func TestMissing(t *testing.T) {
	db := memkv.New()
	defer db.Close()
	ctx, id := pool.NewID(), pool.NewID()
	update(t, db, func(tx kv.RwTx) error {
		if m, err := poolstore.Get(tx, ctx, id); m != nil || err != nil {
			t.Errorf("Get: %v, %v", m, err)
		}
		if err := poolstore.Put(tx, ctx, &pool.Message{ID: id, Role: pool.User,
			Content: []pool.Part{{Type: pool.ImagePart, SHA256: pool.Hash{1}}}}); !errors.Is(err, pool.ErrInvalid) {
			t.Errorf("Put of a part without its artifact: %v", err)
		}
		if _, _, err := poolstore.Artifact(tx, pool.Hash{1}); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("Artifact: %v", err)
		}
		return nil
	})
}

func TestMissingAndDamagedInLists(t *testing.T) {
	db := memkv.New()
	defer db.Close()
	ctx, other := fixedID(1), fixedID(2)
	ids := []pool.ID{fixedID(11), fixedID(12), fixedID(13)}
	update(t, db, func(tx kv.RwTx) error {
		for _, id := range ids {
			for _, c := range []pool.ID{ctx, other} {
				m := pool.NewText(pool.User, id.String())
				m.ID = id
				if err := poolstore.Put(tx, c, m); err != nil {
					return err
				}
			}
		}
		return tx.Put(poolstore.Bucket, append(ctx[:], ids[1][:]...), []byte("spoilt"))
	})
	view(t, db, func(tx kv.Tx) error {
		var got []pool.ID
		err := poolstore.GetMany(tx, other, []pool.ID{ids[2], fixedID(99), ids[0]}, func(i int, m *pool.Message) error {
			if m == nil {
				m = &pool.Message{ID: pool.ID{byte(i)}}
			}
			got = append(got, m.ID)
			return nil
		})
		if want := []pool.ID{ids[2], {1}, ids[0]}; !slices.Equal(got, want) || err != nil {
			t.Errorf("GetMany gives %v, %v", got, err)
		}
		never := func(int, *pool.Message) error { t.Error("a damaged message was given"); return nil }
		if err := poolstore.GetMany(tx, ctx, ids[1:2], never); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("GetMany of a damaged message: %v", err)
		}
		if err := poolstore.GetMany(tx, other, ids, func(int, *pool.Message) error { return kv.ErrStop }); err != nil {
			t.Errorf("GetMany, stopped: %v", err)
		}
		scans(t, tx, ctx, ids)
		return nil
	})
}

func scans(t *testing.T, tx kv.Tx, ctx pool.ID, ids []pool.ID) {
	t.Helper()
	var good, bad []pool.ID
	collect := func(id pool.ID, m *pool.Message, err error) error {
		switch {
		case err == nil && m != nil && m.ID == id:
			good = append(good, id)
		case m == nil && errors.Is(err, kv.ErrDamaged) && strings.Contains(err.Error(), id.String()):
			bad = append(bad, id)
		default:
			t.Errorf("message %s: %v, %v", id, m, err)
		}
		return nil
	}
	if err := poolstore.Scan(tx, ctx, collect); err != nil || !slices.Equal(good, []pool.ID{ids[0], ids[2]}) || !slices.Equal(bad, ids[1:2]) {
		t.Errorf("Scan gives %v and %v damaged, %v", good, bad, err)
	}
	good, bad = nil, nil
	if err := poolstore.ScanAfter(tx, ctx, ids[1], collect); err != nil || !slices.Equal(good, ids[2:]) || bad != nil {
		t.Errorf("ScanAfter gives %v and %v damaged, %v", good, bad, err)
	}
	if err := poolstore.Scan(tx, ctx, func(pool.ID, *pool.Message, error) error { return kv.ErrStop }); err != nil {
		t.Errorf("Scan, stopped: %v", err)
	}
}

// What was changed after reading is stored anew, whatever hash it had.
func TestChangedContentsGetNewHashes(t *testing.T) {
	db := memkv.New()
	defer db.Close()
	ctx := fixedID(1)
	long := strings.Repeat("secret ", 2000)
	m := &pool.Message{ID: fixedID(2), Role: pool.ToolRole, Result: &pool.Result{RequestID: "c", Text: long}}
	update(t, db, func(tx kv.RwTx) error { return poolstore.Put(tx, ctx, m) })
	for _, text := range []string{strings.ToUpper(long), "small", ""} {
		update(t, db, func(tx kv.RwTx) error {
			got, err := poolstore.Get(tx, ctx, m.ID)
			if err != nil {
				return err
			}
			got.Result.Text = text
			if text == "" {
				got.Result.SHA256 = pool.Hash{}
			}
			if err := poolstore.Put(tx, ctx, got); err != nil {
				return err
			}
			again, err := poolstore.Get(tx, ctx, m.ID)
			if err == nil && again.Result.Text != text {
				t.Errorf("%.10q: the text is %.10q", text, again.Result.Text)
			}
			return err
		})
	}
}

func TestArtifacts(t *testing.T) {
	db := memkv.New()
	defer db.Close()
	sizes := []int{0, 1, 256<<10 - 1, 256 << 10, 256<<10 + 1, 1 << 20}
	var names []pool.Hash
	update(t, db, func(tx kv.RwTx) error {
		names = nil
		for _, n := range sizes {
			data := bytes.Repeat([]byte{'x'}, n)
			h, err := poolstore.PutArtifact(tx, data, "text/x")
			if err != nil || h != pool.HashOf(data) {
				t.Fatalf("%d bytes: %s, %v", n, h, err)
			}
			if again, err := poolstore.PutArtifact(tx, data, "text/y"); err != nil || again != h {
				t.Errorf("%d bytes again: %s, %v", n, again, err)
			}
			got, mediaType, err := poolstore.Artifact(tx, h)
			if err != nil || !bytes.Equal(got, data) || mediaType != "text/x" {
				t.Errorf("%d bytes: %d of %s, %v", n, len(got), mediaType, err)
			}
			names = append(names, h)
		}
		return nil
	})
	slices.SortFunc(names, func(a, b pool.Hash) int { return bytes.Compare(a[:], b[:]) })
	view(t, db, func(tx kv.Tx) error {
		if got := scanned(t, tx, pool.Hash{}); !slices.Equal(got, names) {
			t.Errorf("ScanArtifacts gives %v, want %v", got, names)
		}
		if got := scanned(t, tx, names[2]); !slices.Equal(got, names[3:]) {
			t.Errorf("ScanArtifacts after the third gives %v", got)
		}
		return nil
	})
	update(t, db, func(tx kv.RwTx) error {
		for _, h := range names {
			if err := poolstore.DeleteArtifact(tx, h); err != nil {
				return err
			}
		}
		return tx.Scan(poolstore.ArtifactBucket, kv.Range{}, func(key, _ []byte) error {
			t.Errorf("key %x is left", key)
			return nil
		})
	})
}

func scanned(t *testing.T, tx kv.Tx, after pool.Hash) []pool.Hash {
	t.Helper()
	var names []pool.Hash
	err := poolstore.ScanArtifacts(tx, after, func(a pool.ArtifactInfo, err error) error {
		if err != nil || a.MediaType != "text/x" {
			t.Errorf("%v, %v", a, err)
		}
		names = append(names, a.SHA256)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return names
}

func TestDamagedArtifacts(t *testing.T) {
	var data []byte
	for i := range 100_000 {
		data = fmt.Appendf(data, "%06d", i)
	}
	h := pool.HashOf(data)
	chunk := func(n byte) []byte { return append(h[:], 0, 0, 0, n) }
	tests := map[string]func(tx kv.RwTx) error{
		"no header":     func(tx kv.RwTx) error { return tx.Delete(poolstore.ArtifactBucket, h[:]) },
		"spoilt header": func(tx kv.RwTx) error { return tx.Put(poolstore.ArtifactBucket, h[:], []byte("x")) },
		"hostile header": func(tx kv.RwTx) error {
			return tx.Put(poolstore.ArtifactBucket, h[:], sealed([]byte{0xa2, 2, 0x1b, 0x7f, 0, 0, 0, 0, 0, 0, 0, 3, 1}))
		},
		"missing chunk": func(tx kv.RwTx) error { return tx.Delete(poolstore.ArtifactBucket, chunk(1)) },
		"empty chunk":   func(tx kv.RwTx) error { return tx.Put(poolstore.ArtifactBucket, chunk(1), nil) },
		"another chunk": func(tx kv.RwTx) error { return tx.Put(poolstore.ArtifactBucket, chunk(0), []byte("x")) },
		"one wrong byte": func(tx kv.RwTx) error {
			return tx.Put(poolstore.ArtifactBucket, chunk(2), append(bytes.Clone(data[512<<10:len(data)-1]), 'x'))
		},
		"chunks swapped": func(tx kv.RwTx) error { return tx.Put(poolstore.ArtifactBucket, chunk(0), data[256<<10:512<<10]) },
		"header too long": func(tx kv.RwTx) error {
			return tx.Put(poolstore.ArtifactBucket, h[:], sealed([]byte{0xa2, 2, 0x1a, 0, 9, 0x27, 0xc1, 3, 3}))
		},
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			db := memkv.New()
			defer db.Close()
			ctx := fixedID(1)
			m := &pool.Message{ID: fixedID(2), Role: pool.ToolRole, Result: &pool.Result{Text: string(data)}}
			update(t, db, func(tx kv.RwTx) error { return poolstore.Put(tx, ctx, m) })
			update(t, db, spoil)
			view(t, db, func(tx kv.Tx) error {
				if _, _, err := poolstore.Artifact(tx, h); !errors.Is(err, kv.ErrDamaged) || !strings.Contains(err.Error(), h.String()) {
					t.Errorf("Artifact: %v", err)
				}
				if got, err := poolstore.Get(tx, ctx, m.ID); got != nil || !errors.Is(err, kv.ErrDamaged) || !strings.Contains(err.Error(), m.ID.String()) {
					t.Errorf("Get: %v, %v", got, err)
				}
				return nil
			})
		})
	}
}

// Chunks without a header, and headers that cannot be read, are told once each and the scan goes on.
func TestScanArtifactsTellsDamage(t *testing.T) {
	db := memkv.New()
	defer db.Close()
	var orphan, spoilt, good pool.Hash
	update(t, db, func(tx kv.RwTx) error {
		var err error
		for i, h := range []*pool.Hash{&orphan, &spoilt, &good} {
			if *h, err = poolstore.PutArtifact(tx, bytes.Repeat([]byte{byte(i)}, 300_000), "x/y"); err != nil {
				return err
			}
		}
		return errors.Join(tx.Delete(poolstore.ArtifactBucket, orphan[:]), tx.Put(poolstore.ArtifactBucket, spoilt[:], []byte("x")))
	})
	told := map[pool.Hash]int{}
	view(t, db, func(tx kv.Tx) error {
		return poolstore.ScanArtifacts(tx, pool.Hash{}, func(a pool.ArtifactInfo, err error) error {
			if damaged := errors.Is(err, kv.ErrDamaged); damaged == (a.SHA256 == good) {
				t.Errorf("%s: %v", a.SHA256, err)
			}
			told[a.SHA256]++
			return nil
		})
	})
	if len(told) != 3 || told[orphan] != 1 || told[spoilt] != 1 || told[good] != 1 {
		t.Errorf("told %v", told)
	}
}

func TestArtifactsOfAMessage(t *testing.T) {
	m := &pool.Message{Content: []pool.Part{{SHA256: pool.Hash{1}}, {}}, Result: &pool.Result{SHA256: pool.Hash{2}, Parts: []pool.Part{{SHA256: pool.Hash{3}}}}}
	if got := poolstore.Artifacts(m); !slices.Equal(got, []pool.Hash{{1}, {2}, {3}}) {
		t.Errorf("%v", got)
	}
	if got := poolstore.Artifacts(&pool.Message{}); got != nil {
		t.Errorf("%v", got)
	}
}

func TestSniffMediaType(t *testing.T) {
	tests := map[string]string{
		"":                                 "text/plain",
		"plain words":                      "text/plain",
		"\x89PNG\r\n\x1a\n":                "image/png",
		"\xff\xd8\xff\xe0":                 "image/jpeg",
		"GIF89a":                           "image/gif",
		"RIFF\x00\x00\x00\x00WEBPVP":       "image/webp",
		"%PDF-1.7":                         "application/pdf",
		"PK\x03\x04":                       "application/zip",
		"<svg xmlns=\"x\">":                "image/svg+xml",
		"<?xml version=\"1.0\"?>\n<svg>":   "image/svg+xml",
		"<?xml version=\"1.0\"?><a/>":      "text/xml",
		"<html><svg>":                      "text/html",
		"\x00\x00\x00\x20ftypavif":         "image/avif",
		"\x00\x00\x00\x20ftypheic":         "image/heic",
		"\x00\x00\x00\x20ftypM4A ":         "audio/mp4",
		"II*\x00":                          "image/tiff",
		"ID3":                              "audio/mpeg",
		"\xff\xfb\x90":                     "audio/mpeg",
		"OggS\x00":                         "application/ogg",
		"fLaC":                             "audio/flac",
		"{\\rtf1":                          "application/rtf",
		"\x00\x01\x02\x03\xff\xfe\xfd\xfc": "application/octet-stream",
	}
	for data, want := range tests {
		if got := pool.SniffMediaType([]byte(data)); got != want {
			t.Errorf("%q is %s, want %s", data, got, want)
		}
	}
}
