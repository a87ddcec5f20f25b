package exchange

import (
	"crypto/sha256"
	"encoding/json"
	"hash"
	"io"
	"path"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// When a file was imported completely, the store keeps a note of its contents and of the report about it. The same file is then hashed but not read again.
// readersVersion is raised when a reader reads more from a file than before.
const readersVersion = 1

// noted is the content of a file's note.
type noted struct {
	Messages        int       `json:"messages"` // that count as duplicated when the file is imported again
	Structural      int       `json:"structural,omitempty"`
	Skipped         int       `json:"skipped,omitempty"`
	SkippedContexts int       `json:"skipped_contexts,omitempty"`
	Repaired        int       `json:"repaired,omitempty"`
	Warnings        []Warning `json:"warnings,omitempty"`
	Uses            []string  `json:"uses,omitempty"` // other files of its folder
}

// maxNotedWarnings is the largest number of noted warnings about a file; one with more is read again.
const maxNotedWarnings = 100

// passing collects the note of the file that is being read.
type passing struct {
	conversations []record.SourceLink
	messages      int
	before        Report
}

func (im *importer) beginNote() {
	im.passing = &passing{before: *im.report}
}

// see records that the file has a conversation.
func (p *passing) see(format, conversation string, messages int) {
	if p != nil {
		p.conversations = append(p.conversations, record.SourceLink{Format: format, Conversation: conversation})
		p.messages += messages
	}
}

// endNote adds the note of a file that was read completely.
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

// again reports a known file without reading it, if the store has all of it.
func (im *importer) again(f *file) (bool, error) {
	if im.knownFile == nil || f.size < 0 || f.logged() {
		return false, nil
	}
	before := im.exact
	var unreadable error // reading the file reports it
	known, done, err := im.knownFile(f.identity(), func() (sum pool.Hash, err error) {
		sum, unreadable = im.sum(f)
		return sum, unreadable
	})
	if unreadable != nil || err == nil && known == nil {
		im.exact = before // the file is read once more
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

// sum returns the hash of a file.
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

// recount repeats the earlier report about a file; its messages are duplicated now.
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

// identity returns what identifies a file, besides its hash.
func (f *file) identity() record.ImportedFile {
	return record.ImportedFile{Name: path.Base(f.path), Size: f.size, Reader: readersVersion}
}

// summed returns the same file, hashed while it is read.
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

// summing hashes everything that is read.
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

// unchanged returns the function that checks single conversations; nil if nothing is stored.
func (im *importer) unchanged() func(record.SourceLink, pool.Hash) (bool, error) {
	if im.known == nil {
		return nil
	}
	return func(from record.SourceLink, digest pool.Hash) (bool, error) {
		same, err := im.known(from, digest)
		if same {
			im.passing.see(from.Format, from.Conversation, 0)
		}
		return same, err
	}
}
