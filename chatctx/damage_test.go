package chatctx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/testkit"
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
		b.Edit("@4", "other", EditOptions{Stay: true})
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
	src := &Message{Role: pool.User, Content: []pool.Part{{Type: pool.TextPart, Text: "from elsewhere"}}}
	in := &Incoming{Format: "test", Conversation: "1", Title: "In", Branches: []IncomingBranch{{Name: "main", Leaf: 1}}, Nodes: []Node{{ID: "n", Message: src}}}
	if _, err := s.Import(t.Context(), []*Incoming{in}); err != nil {
		t.Fatal(err)
	}
	checkStore(t, s)
	return file
}

// dump is every record of a store.
func dump(t *testing.T, s *Store) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := s.at.DB.View(t.Context(), func(tx kv.Tx) error {
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

var everyBucket = append([]string{record.MetaBucket, record.ContextBucket, record.RecentBucket, record.OpenBucket, record.SourceBucket, pool.ArtifactBucket, record.LooseBucket, index.DocBucket, index.TermBucket, index.WaitingBucket}, care.OwnBuckets...)

// mayBeAbsent are the buckets whose records nothing needs: one that is missing, or has another name, is no damage.
var mayBeAbsent = map[string]bool{record.TagBucket: true, record.MarkBucket: true, record.CountBucket: true, record.LooseBucket: true, record.SourceBucket: true, record.KeyBucket: true, record.RuleBucket: true, record.ToolBucket: true,
	record.RequestBucket: true, record.PartialBucket: true, record.QueuedBucket: true, record.OperationBucket: true, record.MetaBucket: true, branch.PromptBucket: true}

// unsealed are those of whose records a part has no second place to be compared with.
var unsealed = map[string]bool{record.TagBucket: true, record.MarkBucket: true, record.MetaBucket: true, record.SourceBucket: true, index.WaitingBucket: true}

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
	defer s.at.Close()
	var keys [][]byte
	err := s.at.DB.Update(t.Context(), func(tx kv.RwTx) (err error) {
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
	for seed := range testkit.Seeds(t, 2) {
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
	defer s.at.Close()
	before := dump(t, s)
	problems, err := care.Problems(t.Context(), s.at)
	if err != nil {
		t.Fatal(err)
	}
	if len(problems) == 0 {
		was := opened(t, whole)
		if same := fmt.Sprint(dump(t, was)) == fmt.Sprint(before); !same && !harmless {
			t.Error("nothing was found")
		}
		if err := was.at.Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	plan, err := s.Maintenance().Repair(t.Context(), RepairOptions{DryRun: true})
	if err != nil {
		salvageAndLook(t, whole, file, err)
		return
	}
	if fmt.Sprint(dump(t, s)) != fmt.Sprint(before) {
		t.Error("the dry run changed something")
	}
	done, err := s.Maintenance().Repair(t.Context(), RepairOptions{Path: file})
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
		if bucket, _, _ := strings.Cut(key, "\x00"); bucket == pool.Bucket {
			kept[key[max(len(key)-16, 0):]] = true // a message may have come home to another context
		}
	}
	for key, value := range before {
		if bucket, _, _ := strings.Cut(key, "\x00"); bucket == pool.Bucket && readable(value, key) && !kept[key[len(key)-16:]] {
			t.Errorf("the message %x is gone", key)
		}
	}
	use(t, s)
}

func readable(value, key string) bool {
	m := &Message{}
	return pool.Decode([]byte(value), m) == nil && strings.HasSuffix(key, string(m.ID[:]))
}

// use reads each branch and adds to it.
func use(t *testing.T, s *Store) {
	t.Helper()
	for info, err := range s.Contexts(t.Context(), ListOptions{}) {
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
	if errors.Is(err, ErrDamaged) && len(raw) < 64<<10 {
		return // next to nothing is there
	}
	if err != nil {
		t.Fatal(err)
	}
	if got.Messages == 0 {
		t.Error("no message was read")
	}
	s := open(t, fresh)
	checkStore(t, s)
	use(t, s)
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(raw, again) {
		t.Errorf("the broken file was changed: %v", err)
	}
}

// TestDamagedFiles flips bits in pages, cuts the file, leaves what an interrupted rewrite leaves.
func TestDamagedFiles(t *testing.T) {
	whole := wholeStore(t)
	info, err := os.Stat(whole)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range testkit.Seeds(t, 30) {
		t.Run(fmt.Sprint("bit=", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 9))
			mendAndLook(t, whole, damage(t, whole, func(file string) {
				raw, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				page := rnd.IntN(len(raw) / 16384)
				at := page*16384 + rnd.IntN([]int{16, 256, 16384}[seed%3])
				raw[at] ^= 1 << rnd.IntN(8)
				if err := os.WriteFile(file, raw, 0o600); err != nil {
					t.Fatal(err)
				}
			}), seed%3 != 0)
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
