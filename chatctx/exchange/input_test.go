package exchange

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/unicode"

	"github.com/chatctx/chatctx/chatctx/exchange/internal/exchangetest"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// one returns a ChatGPT export of one conversation with one message.
func one(id string) string {
	return `[{"conversation_id":"` + id + `","title":"T ` + id + `","current_node":"q","mapping":{"q":{"id":"q","parent":null,"children":[],"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["words of ` + id + `"]}}}}}]`
}

// member is a file of an archive.
type member struct{ name, text string }

func zipOf(t testing.TB, members ...member) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range members {
		f, err := w.Create(m.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, m.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func gzipOf(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zstdOf(t testing.TB, text string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return string(w.EncodeAll([]byte(text), nil))
}

func utf16Of(t testing.TB, text string, e unicode.Endianness, b unicode.BOMPolicy) string {
	t.Helper()
	s, err := unicode.UTF16(e, b).NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func conversations(all []*record.Incoming) string {
	var ids []string
	for _, in := range all {
		ids = append(ids, in.Conversation)
	}
	return strings.Join(ids, " ")
}

func TestPackedAndEncodedFiles(t *testing.T) {
	dir := t.TempDir()
	zipped := zipOf(t, member{"chat.html", "<html>"}, member{"user.json", `{"id":"u"}`}, member{"conversations-010.json", one("ten")},
		member{"conversations-002.json", one("two")}, member{"conversations-001.json", one("one")})
	for name, c := range map[string]struct{ text, want string }{
		"plain":       {one("a"), "a"},
		"bom":         {"\xef\xbb\xbf" + one("a"), "a"},
		"space":       {"\n\n  " + one("a") + "\n", "a"},
		"utf16le":     {utf16Of(t, one("a"), unicode.LittleEndian, unicode.UseBOM), "a"},
		"utf16be":     {utf16Of(t, one("a"), unicode.BigEndian, unicode.UseBOM), "a"},
		"utf16 bare":  {utf16Of(t, one("a"), unicode.LittleEndian, unicode.IgnoreBOM), "a"},
		"gzip":        {gzipOf(t, one("a")), "a"},
		"zstd":        {zstdOf(t, one("a")), "a"},
		"zip":         {zipped, "one two ten"},
		"zip in zip":  {zipOf(t, member{"User Online Activity/part-0001.zip", zipped}, member{"readme.txt", "hello"}), "one two ten"},
		"gzip in zip": {zipOf(t, member{"c.json.gz", gzipOf(t, one("a"))}), "a"},
		"zip in gzip": {gzipOf(t, zipped), "one two ten"},
		"lines":       {strings.Trim(one("a"), "[]") + "\n" + strings.Trim(one("b"), "[]") + "\n", "a b"},
		"glued":       {strings.Trim(one("a"), "[]") + strings.Trim(one("b"), "[]"), "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			all, rep := readAll(t, Options{}, write(t, filepath.Join(dir, name), c.text))
			if got := conversations(all); got != c.want || rep.Outcome() != Complete {
				t.Errorf("got %q, want %q, outcome %d: %v", got, c.want, rep.Outcome(), rep.Warnings)
			}
			all, rep = readAll(t, Options{Stdin: strings.NewReader(c.text)}, "-")
			if got := conversations(all); got != c.want {
				t.Errorf("from standard input %q: %v", got, rep.Warnings)
			}
		})
	}
}

func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	deep := zipOf(t, member{"a.zip", zipOf(t, member{"b.zip", zipOf(t, member{"c.json", one("c")})})})
	for name, c := range map[string]struct{ text, word string }{
		"empty":      {"", "empty"},
		"blank":      {" \n\n", "empty"},
		"html":       {"<!DOCTYPE html><html><body>x", "HTML"},
		"error":      {`{"error":{"message":"no access"}}`, "no access"},
		"binary":     {"\x7fELF\x00\x01", "binary"},
		"text":       {"Dear diary,\n", "Dear diary"},
		"other json": {`{"name":"x","version":"1"}`, "name, version"},
		"half json":  {`[{"x`, "JSON"},
		"sqlite":     {"SQLite format 3\x00" + strings.Repeat("\x00", 100), "SQLite"},
		"bad zip":    {"PK\x03\x04rubbish", "damaged ZIP"},
		"bad gzip":   {"\x1f\x8brubbish", "gzip"},
		"cut zip":    {zipOf(t, member{"c.json", one("c")})[:60], "damaged ZIP"},
		"three deep": {deep, "no file in this ZIP"},
		"no chats":   {zipOf(t, member{"a.txt", "hello"}), "no file in this ZIP"},
	} {
		_, rep := readAll(t, Options{}, write(t, filepath.Join(dir, name), c.text))
		if rep.Outcome() != Nothing || rep.Failed == 0 {
			t.Errorf("%s: outcome %d, failed %d", name, rep.Outcome(), rep.Failed)
		}
		if !slices.ContainsFunc(rep.Warnings, func(w Warning) bool { return strings.Contains(w.Text, c.word) }) {
			t.Errorf("%s: %v does not say %q", name, rep.Warnings, c.word)
		}
	}
}

func TestMissingFilesAreReported(t *testing.T) {
	_, rep := readAll(t, Options{}, filepath.Join(t.TempDir(), "absent.json"), write(t, filepath.Join(t.TempDir(), "x.json"), one("a")))
	if rep.Outcome() != Partial || rep.Failed != 1 || rep.Messages != 1 {
		t.Errorf("%+v", rep)
	}
}

func TestFoldersAreWalkedWithoutSymlinks(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "b", "c10.json"), one("ten"))
	write(t, filepath.Join(dir, "b", "c9.json"), one("nine"))
	write(t, filepath.Join(dir, "a.json"), one("a"))
	write(t, filepath.Join(dir, "notes.txt"), "hello")
	target := write(t, filepath.Join(outside, "secret.json"), one("secret"))
	if err := os.Symlink(target, filepath.Join(dir, "link.json")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "linked")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	all, rep := readAll(t, Options{}, dir)
	if got := conversations(all); got != "a nine ten" {
		t.Errorf("read %q", got)
	}
	if len(rep.Warnings) != 1 || !strings.Contains(rep.Warnings[0].Text, "notes.txt") {
		t.Errorf("warnings: %v", rep.Warnings)
	}
}

func TestArchivesThatMeanHarm(t *testing.T) {
	dir := t.TempDir()
	escape := zipOf(t, member{"../../evil.json", one("evil")}, member{"/abs.json", one("abs")}, member{`..\win.json`, one("win")}, member{"good.json", one("good")})
	all, rep := readAll(t, Options{}, write(t, filepath.Join(dir, "escape.zip"), escape))
	if conversations(all) != "good" || rep.Outcome() != Partial || len(rep.Warnings) != 3 {
		t.Errorf("%q %v", conversations(all), rep.Warnings)
	}
	limits := Limits{Unpacked: 1 << 16, Ratio: 10, Members: 3}
	bomb := zipOf(t, member{"c.json", "[" + strings.Repeat(" ", 1<<20) + "]"})
	_, rep = readAll(t, Options{Limits: limits}, write(t, filepath.Join(dir, "bomb.zip"), bomb))
	if rep.Messages != 0 || !strings.Contains(rep.Warnings[0].Text, "refused") {
		t.Errorf("a bomb: %v", rep.Warnings)
	}
	_, rep = readAll(t, Options{Limits: limits}, write(t, filepath.Join(dir, "bomb.gz"), gzipOf(t, "["+strings.Repeat(" ", 1<<20)+"]")))
	if rep.Outcome() != Nothing || !strings.Contains(rep.Warnings[0].Text, "refused") {
		t.Errorf("a bomb: %v", rep.Warnings)
	}
	_, rep = readAll(t, Options{Limits: limits}, write(t, filepath.Join(dir, "members.zip"), escape))
	if rep.Outcome() != Nothing || !strings.Contains(rep.Warnings[0].Text, "limit is 3") {
		t.Errorf("many members: %v", rep.Warnings)
	}
	harmless := Limits{Unpacked: 1 << 16, Ratio: 10}
	small, inner, packed := []member{}, []member{}, []member{}
	for i := range 100 { // each is below the limits, and none is named that comes after the bound
		text := fmt.Sprintf(`[%s{"messages":[{"role":"user","content":"%d"}]}]`, strings.Repeat(" ", 20<<10), i)
		small = append(small, member{fmt.Sprintf("%d.json", i), text})
		packed = append(packed, member{fmt.Sprintf("%d.json.gz", i), gzipOf(t, text)})
		inner = append(inner, member{fmt.Sprintf("%d.zip", i), zipOf(t, small[len(small)-1])})
	}
	for name, members := range map[string][]member{"members": small, "packed members": packed, "archives": inner} {
		_, rep = readAll(t, Options{Limits: harmless}, write(t, filepath.Join(dir, "small.zip"), zipOf(t, members...)))
		last := rep.Warnings[len(rep.Warnings)-1]
		if rep.Outcome() != Partial || rep.Messages < 3 || rep.Messages > 90 || len(rep.Warnings) > 3 || !strings.Contains(last.Text, "together: refused; ") || !strings.HasSuffix(last.Text, " further members not read") {
			t.Errorf("many small %s: %+v", name, rep)
		}
	}
	small[0].text = strings.ReplaceAll(small[0].text, " ", "")
	if _, rep = readAll(t, Options{Limits: harmless}, write(t, filepath.Join(dir, "one.zip"), zipOf(t, small[0], small[1], small[2]))); rep.Messages != 3 || rep.Outcome() != Complete {
		t.Errorf("below the limits: %+v", rep)
	}
	_, rep = readAll(t, Options{Limits: Limits{Item: 100}}, write(t, filepath.Join(dir, "large.json"), one("a")))
	if rep.SkippedContexts != 1 || rep.Outcome() != Nothing {
		t.Errorf("a large item: %+v", rep)
	}
}

func TestHostileNesting(t *testing.T) {
	deep := `[{"mapping":{"q":{"message":{"author":{"role":"user"},"content":{"parts":` + strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000) + `}}}}},` + one("good")[1:]
	all, rep := readAll(t, Options{}, write(t, filepath.Join(t.TempDir(), "deep.json"), deep))
	if conversations(all) != "good" || rep.SkippedContexts != 1 || !strings.Contains(rep.Warnings[0].Text, "deep") {
		t.Errorf("%q %v", conversations(all), rep.Warnings)
	}
}

func TestCutOffExportKeepsWhatIsWhole(t *testing.T) {
	text := one("a")[:len(one("a"))-1] + "," + one("b")[1:]
	all, rep := readAll(t, Options{}, write(t, filepath.Join(t.TempDir(), "cut.json"), text[:len(text)-40]))
	if conversations(all) != "a" || rep.Outcome() != Partial || rep.SkippedContexts != 1 {
		t.Errorf("%q %+v", conversations(all), rep)
	}
}

// TestImagesOfTheArchive reads the files of messages from the export.
func TestImagesOfTheArchive(t *testing.T) {
	conv := `[{"conversation_id":"i","current_node":"q","mapping":{"q":{"id":"q","message":{"author":{"role":"user"},"metadata":{"attachments":[{"id":"file-DOC","name":"plan.txt","mime_type":"text/plain"},{"id":"file-IMG"}]},
		"content":{"content_type":"multimodal_text","parts":["see",{"content_type":"image_asset_pointer","asset_pointer":"file-service://file-IMG"},{"content_type":"image_asset_pointer","asset_pointer":"sediment://file_77#p1"},{"content_type":"image_asset_pointer","asset_pointer":"file-service://file-GONE"}]}}}}}]`
	z := zipOf(t, member{"conversations.json", conv}, member{"file-IMG-photo.png", exchangetest.OnePixel}, member{"dalle/file_77.webp", exchangetest.OnePixel},
		member{"file-IMGX-other.png", "no"}, member{"file-DOC-plan.txt", "buy flour"}, member{"file-GONE", ""})
	all, rep := readAll(t, Options{}, write(t, filepath.Join(t.TempDir(), "e.zip"), z))
	if len(all) != 1 || rep.Outcome() != Complete {
		t.Fatal(rep.Warnings)
	}
	parts := all[0].Nodes[0].Message.Content
	var got []string
	for _, p := range parts {
		got = append(got, strings.TrimSpace(p.Type+" "+p.Name))
	}
	want := []string{"text", "image file-IMG-photo.png", "image file_77.webp", "image_asset_pointer", "document plan.txt"}
	if !slices.Equal(got, want) {
		t.Errorf("the parts are %q, want %q", got, want)
	}
	if string(parts[1].Data) != exchangetest.OnePixel || parts[1].MediaType != "image/png" || parts[1].Type != pool.ImagePart {
		t.Errorf("the image is %s of %d bytes", parts[1].MediaType, len(parts[1].Data))
	}
	if string(parts[4].Data) != "buy flour" || parts[4].MediaType != "text/plain" {
		t.Errorf("the document is %+v", parts[4])
	}
}

func TestReadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	path := write(t, filepath.Join(t.TempDir(), "x.json"), "["+strings.Repeat(strings.Trim(one("a"), "[]")+",", 1000)+"null]")
	n := 0
	_, err := Read(ctx, []string{path}, Options{}, func(*record.Incoming) error {
		if n++; n == 3 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || n != 3 {
		t.Errorf("%v after %d", err, n)
	}
	broken := errors.New("the sink is full")
	if _, err = Read(context.Background(), []string{path}, Options{}, func(*record.Incoming) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("the sink's error became %v", err)
	}
}

func TestProgressCountsBytes(t *testing.T) {
	text := strings.Replace(one("a"), "words", strings.Repeat("many words ", 300_000), 1)
	path := write(t, filepath.Join(t.TempDir(), "x.zip"), zipOf(t, member{"conversations.json", text}))
	var last Progress
	if _, err := Read(context.Background(), []string{path}, Options{Progress: func(p Progress) { last = p }}, func(*record.Incoming) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || last.Total != info.Size() || last.Read < last.Total/2 || last.Read > last.Total {
		t.Errorf("%+v", last)
	}
}

func TestNaturalOrder(t *testing.T) {
	names := []string{"c-10.json", "c-9.json", "c-009.json", "b", "c-1/x", "C"}
	slices.SortStableFunc(names, naturalOrder)
	if want := []string{"C", "b", "c-1/x", "c-9.json", "c-009.json", "c-10.json"}; !slices.Equal(names, want) {
		t.Errorf("got %q", names)
	}
}

// TestRoom grows a buffer in steps of any size: it never holds more than its limit, and all buffers together never twice that.
func TestRoom(t *testing.T) {
	const most = 1 << 20
	for _, step := range []int{1, 100, 4096, 70_001, most} {
		var buf []byte
		total := 0
		for len(buf)+step <= most {
			grown := room(buf, step, most)
			if cap(grown) != cap(buf) {
				total += cap(grown)
			}
			buf = grown[:len(buf)+step]
		}
		if cap(buf) > most || total > 2*most {
			t.Errorf("in steps of %d: a buffer of %d, %d in all", step, cap(buf), total)
		}
	}
}
