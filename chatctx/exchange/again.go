package exchange

import (
	"crypto/sha256"
	"encoding/json"
	"hash"
	"io"
	"path"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// A file that was imported to its end is noted in the store by what it holds, with what the report said of it. The same file is then hashed and
// not read. readersVersion goes up when a reader takes from a file what it did not before.
const readersVersion = 1

// noted is what the note of a file keeps.
type noted struct {
	Messages        int       `json:"messages"` // that count as duplicated when the file comes again
	Structural      int       `json:"structural,omitempty"`
	Skipped         int       `json:"skipped,omitempty"`
	SkippedContexts int       `json:"skipped_contexts,omitempty"`
	Repaired        int       `json:"repaired,omitempty"`
	Warnings        []Warning `json:"warnings,omitempty"`
	Uses            []string  `json:"uses,omitempty"` // other files of its folder
}

// maxNotedWarnings is how many warnings about a file are noted; one with more is read again.
const maxNotedWarnings = 100

// passing is a file on its way in, for its note.
type passing struct {
	conversations []chatctx.SourceLink
	messages      int
	before        Report
}

func (im *importer) beginNote() {
	im.passing = &passing{before: *im.report}
}

// see notes that the file holds a conversation.
func (p *passing) see(format, conversation string, messages int) {
	if p != nil {
		p.conversations = append(p.conversations, chatctx.SourceLink{Format: format, Conversation: conversation})
		p.messages += messages
	}
}

// endNote notes a file that was read as a whole.
func (im *importer) endNote(f *file, sum *summing) error {
	p, now := im.passing, im.report
	im.passing = nil
	warnings := now.Warnings[len(p.before.Warnings):]
	if im.note == nil || sum.n != f.size || f.logged() || f.joined || len(warnings) > maxNotedWarnings || now.MoreWarnings > p.before.MoreWarnings {
		return nil
	}
	text, err := json.Marshal(noted{
		Messages:   p.messages + now.Duplicated - p.before.Duplicated,
		Structural: now.Structural - p.before.Structural, Skipped: now.Skipped - p.before.Skipped,
		SkippedContexts: now.SkippedContexts - p.before.SkippedContexts, Repaired: now.Repaired - p.before.Repaired, Warnings: warnings, Uses: f.uses,
	})
	if err != nil {
		return err
	}
	done := f.identity()
	done.SHA256, done.Conversations, done.Report = sum.sum(), p.conversations, text
	im.note(done)
	return nil
}

// again puts a file on the report that is known, and there, as a whole.
func (im *importer) again(f *file) (bool, error) {
	if im.knownFile == nil || f.size < 0 || f.logged() {
		return false, nil
	}
	before := im.exact
	var unreadable error // which reading it will tell
	known, done, err := im.knownFile(f.identity(), func() (sum pool.Hash, err error) {
		sum, unreadable = im.sum(f)
		return sum, unreadable
	})
	if unreadable != nil || err == nil && known == nil {
		im.exact = before // it is read once more
		return false, nil
	}
	if err != nil {
		return false, ofStore(err)
	}
	var was noted
	if err := json.Unmarshal(known.Report, &was); err != nil {
		return false, err
	}
	im.recount(f, &was)
	f.uses = was.Uses
	im.progress.Conversations += len(done)
	return true, im.counted(known.Conversations, done)
}

// sum hashes a file.
func (im *importer) sum(f *file) (pool.Hash, error) {
	rc, err := f.open()
	if err != nil {
		return pool.Hash{}, err
	}
	defer rc.Close()
	s := newSumming(&progressReader{im.ctx, rc, func(n int64) { im.read(float64(n) * f.diskShare()) }})
	_, err = io.Copy(io.Discard, s)
	return s.sum(), err
}

// recount puts on the report what it said of a file before; its messages are duplicated now.
func (im *importer) recount(f *file, was *noted) {
	rep := im.report
	rep.Files++
	rep.Duplicated += was.Messages
	rep.Structural += was.Structural
	rep.Skipped += was.Skipped
	rep.SkippedContexts += was.SkippedContexts
	rep.Repaired += was.Repaired
	for _, w := range was.Warnings {
		w.File = f.name
		rep.warn(w)
	}
	im.progress.Messages += was.Messages
}

// identity is what a file is known by, but for its hash.
func (f *file) identity() chatctx.ImportedFile {
	return chatctx.ImportedFile{Name: path.Base(f.path), Size: f.size, Reader: readersVersion}
}

// summed is the same file, hashed while it is read.
func (f *file) summed() (*file, *summing) {
	s := newSumming(nil)
	out := *f
	out.open = func() (io.ReadCloser, error) {
		rc, err := f.open()
		s.Reader = rc
		return struct {
			io.Reader
			io.Closer
		}{s, rc}, err
	}
	return &out, s
}

// summing hashes what is read.
type summing struct {
	io.Reader
	hash hash.Hash
	n    int64
}

func newSumming(r io.Reader) *summing { return &summing{Reader: r, hash: sha256.New()} }

func (s *summing) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.hash.Write(p[:n])
	s.n += int64(n)
	return n, err
}

func (s *summing) sum() pool.Hash { return pool.Hash(s.hash.Sum(nil)) }

// unchanged is what a reading asks about single conversations; nil where nothing is stored.
func (im *importer) unchanged() func(chatctx.SourceLink, pool.Hash) (bool, error) {
	if im.known == nil {
		return nil
	}
	return func(from chatctx.SourceLink, digest pool.Hash) (bool, error) {
		same, err := im.known(from, digest)
		if same {
			im.passing.see(from.Format, from.Conversation, 0)
		}
		return same, err
	}
}
