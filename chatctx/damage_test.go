package chatctx

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// wholeStore makes a file that has records of each kind.
func wholeStore(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "whole.db")
	s := open(t, file)
	for i := range 3 {
		c := newContext(t, s, "one", ">two", "three", ">four")
		big := strings.Repeat(fmt.Sprint("output ", i, " "), 60_000)
		asks := &Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "a", Tool: "t", Arguments: json.RawMessage(`{}`)}, {ID: "b", Tool: "t", Arguments: json.RawMessage(`{}`)}}}
		if _, err := c.Append(t.Context(), "", asks, answers("a", big)); err != nil {
			t.Fatal(err)
		}
		b := c.Begin("")
		text := "be brief"
		b.SetSystem(text)
		b.Tag("best", "@2")
		b.Mark("@1", "pinned")
		b.Fork("fork", ForkOptions{At: "@3", Stay: true})
		b.Edit("@4", "other", record.EditOptions{Stay: true})
		b.Fork("gone", ForkOptions{At: "@2", Stay: true})
		commit(t, b)
		b = c.Begin("")
		b.RemoveBranch("gone")
		b.RenameBranch("main.2", "edited")
		commit(t, b)
		if _, err := c.Append(t.Context(), "fork", says("five", ">six")...); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := s.Maintenance().Index(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	kept := func(what string) json.RawMessage {
		return json.RawMessage(`{"type":"odd","` + what + `":"` + strings.Repeat("kept ", 60_000) + `"}`)
	}
	src := &Message{Role: pool.User, Content: []pool.Part{{Type: pool.TextPart, Text: "from elsewhere"}, {Type: "odd", Raw: kept("part")}}, Meta: pool.Metadata{ProviderData: map[string]json.RawMessage{"test": kept("data")}}}
	in := &record.Incoming{Format: "test", Conversation: "1", Title: "In", Branches: []record.IncomingBranch{{Name: "main", Leaf: 1}}, Nodes: []record.Node{{ID: "n", Message: src}}}
	if _, err := s.Import(t.Context(), []*record.Incoming{in}); err != nil {
		t.Fatal(err)
	}
	checkStore(t, s)
	return file
}

// dump is every record of a store.
func dump(t *testing.T, s *Store) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := s.at().DB.View(t.Context(), func(tx kv.Tx) error {
		for _, bucket := range everyBucket {
			err := tx.Scan(bucket, kv.Range{}, func(key, value []byte) error {
				out[bucket+"\x00"+string(key)] = string(value)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return out
}

var everyBucket = append([]string{base.MetaBucket, base.ContextBucket, base.RecentBucket, base.OpenBucket, base.SourceBucket, poolstore.ArtifactBucket, base.LooseBucket, index.DocBucket, index.TermBucket, index.WaitingBucket}, care.OwnBuckets...)

// mayBeAbsent are the buckets whose records nothing needs: one that is missing, or has another name, is no damage.
var mayBeAbsent = map[string]bool{base.TagBucket: true, base.MarkBucket: true, base.CountBucket: true, base.LooseBucket: true, base.SourceBucket: true, base.KeyBucket: true, base.RuleBucket: true, base.ToolBucket: true,
	base.RequestBucket: true, base.PartialBucket: true, base.QueuedBucket: true, base.OperationBucket: true, base.MetaBucket: true, branchstore.PromptBucket: true}

// unsealed are those of whose records a part has no second place to be compared with.
var unsealed = map[string]bool{base.TagBucket: true, base.MarkBucket: true, base.MetaBucket: true, base.SourceBucket: true, index.WaitingBucket: true}

// damage copies a file, does something to it, and gives the copy.
func damage(t *testing.T, whole string, fn func(file string)) string {
	t.Helper()
	raw, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "damaged.db")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	fn(file)
	return file
}

// inRecord changes one record of a bucket: the one at a place between 0 and 1.
func inRecord(t *testing.T, file, bucket string, at float64, fn func(tx kv.RwTx, key, value []byte) error) bool {
	t.Helper()
	s := opened(t, file)
	defer s.at().Close()
	var keys [][]byte
	err := s.at().DB.Update(t.Context(), func(tx kv.RwTx) (err error) {
		if keys, err = view.KeysWith(tx, bucket, nil); err != nil || len(keys) == 0 {
			return err
		}
		key := keys[min(int(at*float64(len(keys))), len(keys)-1)]
		value, err := tx.Get(bucket, key)
		if err != nil {
			return err
		}
		return fn(tx, key, bytes.Clone(value))
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(keys) > 0
}

// opened opens a file that the test closes, or that stays closed.
func opened(t *testing.T, file string) *Store {
	t.Helper()
	s, err := Open(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func flip(b []byte, rnd *rand.Rand) []byte {
	out := bytes.Clone(b)
	out[rnd.IntN(len(out))] ^= 1 << rnd.IntN(8)
	return out
}

// TestDamagedRecords spoils records of each bucket, in turn, in each way: it is found, and mended, and nothing that can be read is lost.
func TestDamagedRecords(t *testing.T) {
	whole := wholeStore(t)
	for seed := range testkit.Seeds(t, testkit.Fewer(2)) {
		for i, bucket := range everyBucket {
			rnd := rand.New(rand.NewPCG(seed, uint64(len(bucket))))
			way := []string{"missing", "value", "key", "cut"}[(seed+uint64(i))%4]
			t.Run(fmt.Sprintf("%s/%s/%d", bucket, way, seed), func(t *testing.T) {
				hit := false
				file := damage(t, whole, func(file string) {
					hit = inRecord(t, file, bucket, rnd.Float64(), func(tx kv.RwTx, key, value []byte) error {
						return spoil(tx, rnd, bucket, way, key, value)
					})
				})
				if !hit {
					t.Skip("no record of that kind")
				}
				harmless := mayBeAbsent[bucket] && (way == "missing" || way == "key") || unsealed[bucket]
				mendAndLook(t, whole, file, harmless)
			})
		}
	}
}

func spoil(tx kv.RwTx, rnd *rand.Rand, bucket, way string, key, value []byte) error {
	if string(key) == "format" {
		return nil // that is another test's
	}
	switch {
	case way == "missing":
		return tx.Delete(bucket, key)
	case way == "key":
		if err := tx.Delete(bucket, key); err != nil {
			return err
		}
		return tx.Put(bucket, flip(key, rnd), value)
	case len(value) == 0:
		return tx.Put(bucket, key, []byte{1})
	case way == "cut":
		return tx.Put(bucket, key, value[:rnd.IntN(len(value))])
	}
	return tx.Put(bucket, key, flip(value, rnd))
}

// mendAndLook checks, repairs and compares with the store as it was.
func mendAndLook(t *testing.T, whole, file string, harmless bool) {
	t.Helper()
	s, err := Open(file, Options{})
	if err != nil {
		salvageAndLook(t, whole, file, err)
		return
	}
	defer s.at().Close()
	problems, err := care.Problems(t.Context(), s.at())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasSuffix(p.Text, "in a circle") { // nothing but the pages one by one can be read
			_, err := s.Maintenance().Repair(t.Context(), record.RepairOptions{Path: file})
			salvageAndLook(t, whole, file, err)
			return
		}
	}
	before := dump(t, s)
	if len(problems) == 0 {
		was := opened(t, whole)
		if same := fmt.Sprint(dump(t, was)) == fmt.Sprint(before); !same && !harmless {
			t.Error("nothing was found")
		}
		if err := was.at().Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	plan, err := s.Maintenance().Repair(t.Context(), record.RepairOptions{DryRun: true})
	if err != nil {
		salvageAndLook(t, whole, file, err)
		return
	}
	if fmt.Sprint(dump(t, s)) != fmt.Sprint(before) {
		t.Error("the dry run changed something")
	}
	done, err := s.Maintenance().Repair(t.Context(), record.RepairOptions{Path: file})
	if errors.Is(err, ErrDamaged) {
		salvageAndLook(t, whole, file, err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Mended) != len(plan.Mended) || done.Backup == "" {
		t.Errorf("planned %v, did %v, backup %q", plan.Mended, done.Mended, done.Backup)
	}
	for _, p := range done.Left {
		t.Errorf("is left: %+v, of %+v; done %+v", p, problems, done.Mended)
	}
	after := dump(t, s)
	kept := map[string]bool{}
	for key := range after {
		if bucket, _, _ := strings.Cut(key, "\x00"); bucket == poolstore.Bucket {
			kept[key[max(len(key)-16, 0):]] = true // a message may have come home to another context
		}
	}
	for key, value := range before {
		if bucket, _, _ := strings.Cut(key, "\x00"); bucket == poolstore.Bucket && readable(value, key) && !kept[key[len(key)-16:]] {
			t.Errorf("the message %x is gone", key)
		}
	}
	use(t, s)
}

func readable(value, key string) bool {
	m := &Message{}
	return poolstore.Decode([]byte(value), m) == nil && strings.HasSuffix(key, string(m.ID[:]))
}

// use reads each branch and adds to it.
func use(t *testing.T, s *Store) {
	t.Helper()
	for info, err := range s.Contexts(t.Context(), record.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		c := &ChatContext{ID: info.ID, store: s}
		branches, err := c.Branches(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range branches {
			texts(t, c, b.Name)
			if _, err := c.Append(t.Context(), b.Name, says("goes on")...); err != nil {
				t.Fatalf("appending to %s: %v", b.Name, err)
			}
		}
	}
	checkStore(t, s)
}

// salvageAndLook: where a file cannot be mended in place, it says damaged, and what can be read comes into a new store.
func salvageAndLook(t *testing.T, whole, file string, why error) {
	t.Helper()
	if !errors.Is(why, ErrDamaged) && !errors.Is(why, ErrNotOurs) && !errors.Is(why, ErrTooNew) && !errors.Is(why, ErrTooOld) {
		t.Errorf("it is refused with %v", why)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(t.TempDir(), "salvaged.db")
	got, err := Salvage(t.Context(), file, fresh, Options{})
	if errors.Is(why, ErrTooNew) || errors.Is(why, ErrTooOld) {
		if !errors.Is(err, ErrTooNew) && !errors.Is(err, ErrTooOld) {
			t.Errorf("a store of another version is read: %v", err)
		}
		return
	}
	if (errors.Is(err, ErrDamaged) || errors.Is(err, ErrNotOurs)) && len(raw) < 64<<10 {
		return // next to nothing is there
	}
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.Stat(whole)
	if err != nil {
		t.Fatal(err)
	}
	if got.Messages == 0 && int64(len(raw)) > all.Size()/4 { // where the messages lie in the file is chance
		t.Error("no message was read")
	}
	s := open(t, fresh)
	checkStore(t, s)
	use(t, s)
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(raw, again) {
		t.Errorf("the broken file was changed: %v", err)
	}
}

const testPage = 16384

// pageDamages are done to the pages of a file. Harmless ones may hit what nothing refers to.
var pageDamages = []struct {
	name     string
	harmless bool
	spoil    func(raw []byte, rnd *rand.Rand)
}{
	{"head", false, func(raw []byte, rnd *rand.Rand) { raw[aPage(raw, rnd)+rnd.IntN(16)] ^= 1 << rnd.IntN(8) }},
	{"element", true, func(raw []byte, rnd *rand.Rand) { raw[aPage(raw, rnd)+rnd.IntN(256)] ^= 1 << rnd.IntN(8) }},
	{"bit", true, func(raw []byte, rnd *rand.Rand) { raw[aPage(raw, rnd)+rnd.IntN(testPage)] ^= 1 << rnd.IntN(8) }},
	{"swapped elements", true, func(raw []byte, rnd *rand.Rand) {
		at := aPage(raw, rnd)
		if n := int(binary.NativeEndian.Uint16(raw[at+10:])); n > 1 && n < 1000 {
			a, b := at+16+16*rnd.IntN(n), at+16+16*rnd.IntN(n)
			for i := range 16 {
				raw[a+i], raw[b+i] = raw[b+i], raw[a+i]
			}
		}
	}},
	{"child", true, func(raw []byte, rnd *rand.Rand) { // a branch leads somewhere else, often to itself
		var branches []int
		for at := 0; at < len(raw); at += testPage {
			if binary.NativeEndian.Uint16(raw[at+8:]) == 1 {
				branches = append(branches, at)
			}
		}
		if len(branches) == 0 {
			return
		}
		at := branches[rnd.IntN(len(branches))]
		n := max(int(binary.NativeEndian.Uint16(raw[at+10:])), 1)
		to := uint64(at / testPage)
		if rnd.IntN(2) == 0 {
			to = uint64(rnd.IntN(len(raw) / testPage))
		}
		binary.NativeEndian.PutUint64(raw[at+16+16*rnd.IntN(n)+8:], to)
	}},
	{"copied page", true, func(raw []byte, rnd *rand.Rand) {
		from, to := aPage(raw, rnd), aPage(raw, rnd)
		copy(raw[to+8:to+testPage], raw[from+8:from+testPage])
	}},
	{"emptied page", true, func(raw []byte, rnd *rand.Rand) {
		at := aPage(raw, rnd)
		clear(raw[at : at+testPage])
	}},
	{"newest record", false, func(raw []byte, rnd *rand.Rand) { // of the two at the begin
		at := 0
		if binary.NativeEndian.Uint64(raw[testPage+16+48:]) > binary.NativeEndian.Uint64(raw[16+48:]) {
			at = testPage
		}
		raw[at+16+rnd.IntN(64)] ^= 1 << rnd.IntN(8)
	}},
}

func aPage(raw []byte, rnd *rand.Rand) int { return rnd.IntN(len(raw)/testPage) * testPage }

// TestDamagedFiles flips bits in pages, cuts the file, leaves what an interrupted rewrite leaves.
func TestDamagedFiles(t *testing.T) {
	whole := wholeStore(t)
	info, err := os.Stat(whole)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range testkit.Seeds(t, testkit.Fewer(60)) {
		way := seed % uint64(len(pageDamages))
		t.Run(fmt.Sprint(pageDamages[way].name, "=", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 9))
			file := damage(t, whole, func(file string) {
				raw, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				pageDamages[way].spoil(raw, rnd)
				if err := os.WriteFile(file, raw, 0o600); err != nil {
					t.Fatal(err)
				}
			})
			if seed%5 == 0 { // making the index anew ends too
				again := damage(t, file, func(string) {})
				if s, err := Open(again, Options{}); err == nil {
					if err := find.Reindex(t.Context(), base.Of(s), nil); err != nil && !errors.Is(err, ErrDamaged) {
						t.Errorf("reindex: %v", err)
					}
					s.at().Close()
				}
			}
			mendAndLook(t, whole, file, pageDamages[way].harmless)
		})
	}
	for _, part := range []float64{0, 0.1, 0.5, 0.9, 0.999} {
		t.Run(fmt.Sprint("cut=", part), func(t *testing.T) {
			mendAndLook(t, whole, damage(t, whole, func(file string) {
				if err := os.Truncate(file, max(int64(part*float64(info.Size())), 1)); err != nil {
					t.Fatal(err)
				}
			}), false)
		})
	}
	t.Run("rewrite", func(t *testing.T) {
		file := damage(t, whole, func(file string) {
			if err := os.WriteFile(file+".rewrite", []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		})
		s := open(t, file)
		checkStore(t, s)
		if err := s.Maintenance().Vacuum(t.Context()); err != nil {
			t.Fatal(err)
		}
		use(t, s)
	})
}

// TestStrayCopiesGo: a message that is found a second time, under a context that is not there, as old pages of a file may give it, is taken away there.
func TestStrayCopiesGo(t *testing.T) {
	whole := wholeStore(t)
	for at := range 4 {
		file := damage(t, whole, func(file string) {
			inRecord(t, file, poolstore.Bucket, float64(at)/4, func(tx kv.RwTx, key, value []byte) error {
				key = bytes.Clone(key)
				key[0] ^= 8
				return tx.Put(poolstore.Bucket, key, value)
			})
		})
		mendAndLook(t, whole, file, false)
	}
}

// TestSalvageRefusesOtherVersions: what another version wrote is not taken for what this one knows.
func TestSalvageRefusesOtherVersions(t *testing.T) {
	whole := wholeStore(t)
	for format, want := range map[string]error{"1": ErrTooOld, "99": ErrTooNew} {
		file := damage(t, whole, func(file string) {
			s := opened(t, file)
			err := s.at().DB.Update(t.Context(), func(tx kv.RwTx) error { return tx.Put(base.MetaBucket, base.MetaFormat, []byte(format)) })
			if err := errors.Join(err, s.at().Close()); err != nil {
				t.Fatal(err)
			}
		})
		fresh := filepath.Join(t.TempDir(), "fresh.db")
		if _, err := Salvage(t.Context(), file, fresh, Options{}); !errors.Is(err, want) {
			t.Errorf("version %s: %v", format, err)
		}
		if _, err := os.Stat(fresh); err == nil {
			t.Errorf("version %s: a store was made", format)
		}
	}
}

// TestADamagedFirstPage: two pages lead to the state of a file, the newest and the one before it. With one of them damaged the state before the last change is what there is, and check says so.
func TestADamagedFirstPage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.db")
	s, err := Open(file, Options{Create: true, Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	c := newContext(t, s, "one")
	appendTo(t, c, "", says("two")...)
	appendTo(t, c, "", says("three")...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]bool{}
	for _, page := range []int{0, 1} {
		damaged := bytes.Clone(whole)
		for i := range 32 {
			damaged[page*16384+32+i] ^= 0xff
		}
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(file, Options{Program: "test"})
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Context(t.Context(), c.ID.String())
		if err != nil {
			t.Fatal(err)
		}
		snap, err := c.Snapshot(t.Context(), "")
		if err != nil {
			t.Fatalf("with page %d damaged: %v", page, err)
		}
		found[snap.Len()] = true
		told := 0
		if err := s.Maintenance().Check(t.Context(), CheckOptions{Full: true}, func(record.Problem) { told++ }); err != nil {
			t.Fatal(err)
		}
		if told != 1 {
			t.Errorf("check says %d things of page %d", told, page)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !found[3] || !found[2] || len(found) != 2 {
		t.Errorf("there were %v messages", found)
	}
}
