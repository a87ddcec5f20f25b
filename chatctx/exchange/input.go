package exchange

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/internal/leftover"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// file is one file to read, wherever it is.
type file struct {
	name   string // for people: the path, or archive.zip!member
	path   string // its path in its container, with slashes
	size   int64  // in bytes, as stored there, packed or not; -1 if unknown
	open   func() (io.ReadCloser, error)
	within container // its folder or archive
	disk   string    // its path on disk, "" if it has none
	uses   []string  // the paths of the files in its container that belong to it: images, parts, descriptions
	joined bool      // a part of its content is in those, so that its own bytes do not identify it
	share  float64   // how many bytes on disk one of its bytes stands for, for the progress; 0 means one
}

// container is a folder or an archive.
type container interface {
	// list returns the paths of the files in it, in natural order. Symbolic links are not followed.
	list() ([]string, error)
	// get returns one of the files.
	get(path string) (*file, error)
	// under returns the paths of the files below one of its folders, in natural order.
	under(dir string) ([]string, error)
}

// diskShare returns share with its default.
func (f *file) diskShare() float64 {
	if f.share == 0 {
		return 1
	}
	return f.share
}

// sibling returns a file of the same container by its path there, and records that it belongs to this one.
func (f *file) sibling(path string) (*file, error) {
	if f.within == nil {
		return nil, fs.ErrNotExist
	}
	other, err := f.within.get(path)
	if err == nil {
		f.uses = append(f.uses, path)
	}
	return other, err
}

// read returns a file's bytes; more than max bytes are an error.
func (f *file) read(max int64) ([]byte, error) {
	rc, err := f.open()
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	b, err := io.ReadAll(io.LimitReader(rc, max+1))
	if err == nil && int64(len(b)) > max {
		err = fmt.Errorf("%s is larger than %d MB", f.name, max>>20)
	}
	return b, err
}

// folder is a folder on disk.
type folder struct {
	root string
	deep bool // include the folders in it
}

func (d folder) list() ([]string, error) { return d.walk(d.root, d.deep) }

func (d folder) under(dir string) ([]string, error) {
	if !fs.ValidPath(dir) {
		return nil, fmt.Errorf("%q leaves its folder", dir)
	}
	return d.walk(filepath.Join(d.root, filepath.FromSlash(dir)), true)
}

func (d folder) walk(from string, deep bool) ([]string, error) {
	var names []string
	err := filepath.WalkDir(from, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && p == from:
			return err
		case err != nil:
			return nil
		case e.IsDir() && p != from && !deep:
			return fs.SkipDir
		case e.Type().IsRegular():
			rel, err := filepath.Rel(d.root, p)
			if err != nil {
				return err
			}
			names = append(names, filepath.ToSlash(rel))
		}
		return nil
	})
	slices.SortStableFunc(names, naturalOrder)
	slices.SortStableFunc(names, subAgentsLast)
	return names, err
}

// subAgentsLast orders the files of sub-agents after all others, so that their sessions are known by then.
func subAgentsLast(a, b string) int {
	rank := func(name string) int {
		if strings.HasPrefix(path.Base(name), "agent-") {
			return 1
		}
		return 0
	}
	return rank(a) - rank(b)
}

func (d folder) get(name string) (*file, error) {
	if !fs.ValidPath(name) {
		return nil, fmt.Errorf("%q leaves its folder", name)
	}
	p := filepath.Join(d.root, filepath.FromSlash(name))
	info, err := os.Lstat(p)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", p)
	}
	open := func() (io.ReadCloser, error) { return os.Open(p) }
	return &file{name: p, path: name, size: info.Size(), open: open, within: d, disk: p}, nil
}

// archive is an open ZIP.
type archive struct {
	name    string
	share   float64 // the share of its bytes on disk
	members map[string]*zip.File
	twice   []string // names that appear more than once
	limits  Limits
	most    map[string]int64 // how much of each member one reading unpacked
	all     *unpacked
}

// unpacked counts what the members of a ZIP unpack to together, those of ZIPs and packed files in it too.
type unpacked struct {
	limits Limits
	packed int64 // the size of the outermost ZIP
	n      int64
}

func (u *unpacked) add(n int64) error {
	u.n += n
	return u.over()
}

// over returns an error once that is more than is plausible.
func (u *unpacked) over() error {
	if u.n <= u.limits.Unpacked || u.n <= u.packed*int64(u.limits.Ratio) {
		return nil
	}
	return fmt.Errorf("the members of the ZIP unpack to more than %d MB and %d times its size together: refused", u.limits.Unpacked>>20, u.limits.Ratio)
}

// together returns the count that a file's bytes belong to, nil if it is in no ZIP.
func (f *file) together() *unpacked {
	if a, is := f.within.(*archive); is {
		return a.all
	}
	return nil
}

// openArchive opens a ZIP on disk. name is its name for people.
func openArchive(name, path string, l Limits) (*archive, func() error, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil {
		var a *archive
		if a, err = newArchive(name, f, info.Size(), l); err == nil {
			return a, f.Close, nil
		}
	}
	f.Close()
	return nil, nil, err
}

func newArchive(name string, r io.ReaderAt, size int64, l Limits) (*archive, error) {
	z, err := zip.NewReader(r, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, fmt.Errorf("the ZIP is damaged: %w", err)
	}
	if len(z.File) > l.Members {
		return nil, fmt.Errorf("the ZIP has %d members: the limit is %d", len(z.File), l.Members)
	}
	rest := uint64(size)
	for _, f := range z.File {
		if f.CompressedSize64 > rest {
			return nil, errors.New("the ZIP is refused: its members overlap, and may unpack to any size")
		}
		rest -= f.CompressedSize64
	}
	a := &archive{name: name, members: make(map[string]*zip.File, len(z.File)), limits: l, most: map[string]int64{}, all: &unpacked{limits: l, packed: size}}
	again := map[string]int{}
	for _, f := range z.File {
		if !f.Mode().IsRegular() || strings.HasSuffix(f.Name, "/") {
			continue
		}
		called := f.Name
		for a.members[called] != nil { // the same name again is another file
			again[f.Name]++
			called = fmt.Sprintf("%s~%d%s", strings.TrimSuffix(f.Name, path.Ext(f.Name)), again[f.Name]+1, path.Ext(f.Name))
		}
		if called != f.Name {
			a.twice = append(a.twice, f.Name)
		}
		a.members[called] = f
	}
	return a, nil
}

// escaping returns the members whose path leads out of the archive, which are not read.
func (a *archive) escaping() []string {
	var names []string
	for n := range a.members {
		if !fs.ValidPath(n) || strings.Contains(n, `\`) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

func (a *archive) list() ([]string, error) {
	names := make([]string, 0, len(a.members))
	for n := range a.members {
		if fs.ValidPath(n) && !strings.Contains(n, `\`) {
			names = append(names, n)
		}
	}
	slices.SortFunc(names, naturalOrder)
	return names, nil
}

func (a *archive) under(dir string) ([]string, error) {
	names, err := a.list()
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, dir+"/") }), err
}

func (a *archive) get(name string) (*file, error) {
	z := a.members[name]
	if z == nil {
		return nil, fmt.Errorf("%s!%s: %w", a.name, name, fs.ErrNotExist)
	}
	open := func() (io.ReadCloser, error) {
		if z.Flags&1 != 0 {
			return nil, errors.New("it is encrypted: unpack it first")
		}
		rc, err := z.Open()
		if err != nil {
			return nil, err
		}
		return a.limits.bounded(rc, func() int64 { return int64(z.CompressedSize64) }, func(n int64) error {
			more := max(n-a.most[name], 0)
			a.most[name] += more
			return a.all.add(more)
		}), nil
	}
	share := a.share * float64(z.CompressedSize64) / float64(max(z.UncompressedSize64, 1))
	return &file{name: a.name + "!" + name, path: name, size: int64(z.UncompressedSize64), open: open, within: a, share: share}, nil
}

// bounded returns a reader that fails if more is unpacked than is plausible for so many packed bytes, or if count does, which it tells how much it has unpacked.
func (l Limits) bounded(rc io.ReadCloser, packed func() int64, count func(n int64) error) io.ReadCloser {
	return &boundedReader{ReadCloser: rc, packed: packed, count: count, limits: l}
}

type boundedReader struct {
	io.ReadCloser
	packed func() int64
	count  func(n int64) error
	limits Limits
	n      int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	if b.n > b.limits.Unpacked && b.n > b.packed()*int64(b.limits.Ratio) {
		return n, fmt.Errorf("unpacks to more than %d MB and %d times its size: refused", b.limits.Unpacked>>20, b.limits.Ratio)
	}
	return n, cmp.Or(b.count(b.n), err)
}

// countingReader counts the bytes that are read, for the progress and for bounded.
type countingReader struct {
	io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// naturalOrder compares names, with runs of digits as numbers.
func naturalOrder(a, b string) int {
	for a != "" && b != "" {
		if na, nb := digits([]byte(a)), digits([]byte(b)); na > 0 && nb > 0 {
			x, y := strings.TrimLeft(a[:na], "0"), strings.TrimLeft(b[:nb], "0")
			if len(x) != len(y) {
				return len(x) - len(y)
			}
			if c := strings.Compare(x, y); c != 0 {
				return c
			}
			a, b = a[na:], b[nb:]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

// isZip, isGzip and isZstd report whether the first bytes are those of such a packed file.
func isZip(b []byte) bool {
	return bytes.HasPrefix(b, []byte("PK\x03\x04")) || bytes.HasPrefix(b, []byte("PK\x05\x06"))
}
func isGzip(b []byte) bool { return bytes.HasPrefix(b, []byte{0x1F, 0x8B}) }
func isZstd(b []byte) bool { return bytes.HasPrefix(b, []byte{0x28, 0xB5, 0x2F, 0xFD}) }

// content is an open file, unpacked and decoded to UTF-8.
type content struct {
	*bufio.Reader
	packed bool // it was unpacked, so it differs from the file on disk
	close  []func()
}

func (c *content) Close() {
	for _, f := range slices.Backward(c.close) {
		f()
	}
}

// maxLayers is how many layers of packing are unpacked.
const maxLayers = 3

// openContent opens a file, unpacks gzip and zstd, and decodes UTF-16. A ZIP stays unchanged.
func openContent(ctx context.Context, f *file, l Limits, read func(n int64)) (*content, error) {
	rc, err := f.open()
	if err != nil {
		return nil, err
	}
	c := &content{close: []func(){func() { rc.Close() }}}
	counted := &countingReader{Reader: &progressReader{ctx, rc, read}}
	size := headSize
	if f.size >= 0 && f.size < headSize {
		size = max(int(f.size)+1, 4096)
	}
	c.Reader = bufio.NewReaderSize(counted, size)
	for range maxLayers {
		unpacked, err := c.unpack(counted, l, f.together())
		if err != nil {
			c.Close()
			return nil, err
		}
		if !unpacked {
			c.decode()
			return c, nil
		}
	}
	c.Close()
	return nil, fmt.Errorf("packed more than %d times", maxLayers)
}

// unpack removes one layer of packing, and reports whether there was one. all, if not nil, counts it too.
func (c *content) unpack(counted *countingReader, l Limits, all *unpacked) (bool, error) {
	b, _ := c.Peek(4)
	var rc io.ReadCloser
	switch {
	case isGzip(b):
		z, err := gzip.NewReader(c.Reader)
		if err != nil {
			return false, fmt.Errorf("the gzip file is damaged: %w", err)
		}
		rc = z
	case isZstd(b):
		z, err := zstd.NewReader(c.Reader, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return false, fmt.Errorf("the zstd file is damaged: %w", err)
		}
		rc = z.IOReadCloser()
	default:
		return false, nil
	}
	c.packed = true
	c.close = append(c.close, func() { rc.Close() })
	before := int64(0)
	count := func(n int64) error {
		if all == nil {
			return nil
		}
		n, before = n-before, n
		return all.add(n)
	}
	c.Reader = bufio.NewReaderSize(l.bounded(rc, func() int64 { return counted.n }, count), headSize)
	return true, nil
}

// decode removes a byte order mark and converts UTF-16 to UTF-8.
func (c *content) decode() {
	b, _ := c.Peek(4)
	enc := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	switch {
	case bytes.HasPrefix(b, []byte{0xEF, 0xBB, 0xBF}):
		c.Discard(3)
		return
	case bytes.HasPrefix(b, []byte{0xFF, 0xFE}):
		c.Discard(2)
	case bytes.HasPrefix(b, []byte{0xFE, 0xFF}):
		c.Discard(2)
		enc = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	case len(b) == 4 && (b[0] == '{' || b[0] == '[') && b[1] == 0 && b[3] == 0:
	case len(b) == 4 && b[0] == 0 && b[2] == 0 && (b[1] == '{' || b[1] == '['):
		enc = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	default:
		return
	}
	c.Reader = bufio.NewReaderSize(transform.NewReader(c.Reader, enc.NewDecoder()), headSize)
}

// progressReader reports what is read and ends with its context.
type progressReader struct {
	ctx  context.Context
	r    io.Reader
	read func(n int64)
}

func (p *progressReader) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := p.r.Read(b)
	p.read(int64(n))
	return n, err
}

// spool copies a file to a temporary one on disk for random access: a ZIP in a ZIP or on standard input, a database. A file on disk is returned as it is. done
// removes the copy.
func (f *file) spool(ctx context.Context, l Limits) (diskPath string, done func(), err error) {
	if f.disk != "" {
		return f.disk, func() {}, nil
	}
	rc, err := f.open()
	if err != nil {
		return "", nil, err
	}
	defer rc.Close()
	t, err := os.CreateTemp("", leftover.Name("import-*"+path.Ext(f.path)))
	if err != nil {
		return "", nil, err
	}
	done = func() { os.Remove(t.Name()) }
	src := io.LimitReader(&progressReader{ctx, rc, func(int64) {}}, l.Spool+1)
	n, err := io.Copy(t, src)
	if cerr := t.Close(); err == nil {
		err = cerr
	}
	if err == nil && n > l.Spool {
		err = fmt.Errorf("more than %d MB", l.Spool>>20)
	}
	if err != nil {
		done()
		return "", nil, err
	}
	return t.Name(), done, nil
}
