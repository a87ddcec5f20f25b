package exchange

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/pool"
)

// place is a place in a file: a line or the index of an array item. The zero place is the whole file.
type place struct {
	line  int // from 1; 0 if not given
	index int // from 1; 0 if not given
	what  string
}

func atLine(n int) place  { return place{line: n} }
func atIndex(i int) place { return place{index: i + 1} } // i counts from 0

// in returns the same place, narrowed to a part of it: a message, a key.
func (p place) in(what string) place {
	p.what = what
	return p
}

// reading is a file that is being read: its input, and the receivers of its content. It is not safe for concurrent use.
type reading struct {
	ctx    context.Context
	format string
	file   *file
	head   *head         // what detection saw
	db     *database     // set if the file is a SQLite database
	buf    *bufio.Reader // the content from its beginning, unpacked, as UTF-8
	onDisk func() (path string, done func(), err error)
	limits Limits
	report *Report
	sink   func(*record.Incoming) error
	// The receivers of content that only the store's own export has; all except native are nil if nothing is stored.
	native   func(record.Native) (target nativeTarget, alone bool, err error)
	below    func(child, parent chatctx.ID, task *record.Task) (bool, error) // for a child that came before its parent
	artifact func(data []byte, mediaType string) error
	settings func(map[string]json.RawMessage) error
	// unchanged reports whether the store has exactly the conversation that a record with that digest made, and counts it in the report if so; nil if nothing
	// is known.
	unchanged func(from record.SourceLink, digest pool.Hash) (bool, error)
	doc       document
	own       *sieve // see emptied
	// wordless has the messages of which no content was understood, with the key that seems to have it: they are left out.
	wordless map[*chatctx.Message]string
	// structuralKeys are those for the format structuralOf.
	structuralOf   string
	structuralKeys map[string]bool
	assets         *assets                           // the files beside this one, after the first request
	finished       bool                              // read only what is finished
	shelf          *shelf                            // nil means that everything stays in memory
	large          func(at place, s *splitter) error // reads an item that is too large for memory; nil for a format without such items
}

// seenBefore reports whether a conversation was imported from exactly the same record before: then only its records must be counted. digest is the record's
// digest, for Incoming.Digest.
func (r *reading) seenBefore(conversation string, item value) (digest pool.Hash, seen bool, err error) {
	if r.unchanged == nil || conversation == "" {
		return digest, false, nil
	}
	digest = pool.HashOf(item.raw())
	seen, err = r.unchanged(record.SourceLink{Format: r.format, Conversation: conversation}, digest)
	return digest, seen, err
}

// trouble returns how many problems were reported so far that a second import must report again.
func (r *reading) trouble() int {
	rep := r.report
	return len(rep.Warnings) + rep.MoreWarnings + rep.Skipped + rep.Repaired
}

// emit passes a conversation on, with a title derived if it has none, and with each message's source. An error ends the reading: return it.
func (r *reading) emit(in *record.Incoming) error {
	in.Format, in.File = firstOf(in.Format, r.format), r.file.name
	if r.finished && finishedOnly(in) {
		r.file.joined, in.Digest = true, pool.Hash{} // so that the file is read again
		if len(in.Nodes) == 0 {
			return r.ctx.Err()
		}
	}
	title := strings.TrimSpace(in.Title)
	if in.Title = plainTitle(title); in.Title != title { // so all of it is kept
		in.AppData = appData(r.format, joined(in.AppData[r.format], object("title", title)))
	}
	r.setTitle(in)
	setLabels(in)
	for _, n := range in.Nodes {
		s := source(n.Message)
		s.Format, s.Conversation, s.Node = in.Format, in.Conversation, n.ID
	}
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if r.shelf != nil {
		if r.shelf.err != nil {
			return r.shelf.err
		}
		in.Contents = r.shelf
		defer r.shelf.newConversation()
	}
	all := []map[string]json.RawMessage{in.Settings}
	for i := range in.Branches {
		all = append(all, in.Branches[i].Settings)
	}
	r.warnHeld(in.Title, map[string]bool{}, all...)
	return r.sink(in)
}

// under returns the paths of the files in a folder beside this one.
func (r *reading) under(dir string) []string {
	if r.file.within == nil {
		return nil
	}
	names, err := r.file.within.under(dir)
	if err != nil {
		return nil // there is no such folder
	}
	return names
}

// besideJSON reads a JSON file of the same folder or archive, and reports whether it could.
func (r *reading) besideJSON(name string, f func(v value)) bool {
	file, err := r.file.sibling(name)
	if err != nil {
		return false
	}
	r.file.joined = true
	text, err := file.read(int64(r.limits.Item))
	if err != nil {
		r.warn(place{}, "%s cannot be read: %v", file.path, err)
		return false
	}
	v, _, err := new(document).parse(text, false)
	if err != nil {
		r.warn(place{}, "%s is not JSON and is left out: %v", file.path, err)
		return false
	}
	r.repeatedKeys(place{what: file.path}, v)
	f(v)
	return true
}

// folderName returns the name of the file's folder, "" if it is in none.
func (r *reading) folderName() string {
	dir := path.Base(path.Dir(r.file.path))
	if (dir == "." || dir == "/") && r.file.disk != "" {
		if disk, err := filepath.Abs(r.file.disk); err == nil {
			dir = filepath.Base(filepath.Dir(disk))
		}
	}
	if dir == "." || dir == "/" {
		return ""
	}
	return dir
}

// stem returns the file's name without folder and extension; "" for standard input.
func (r *reading) stem() string {
	if r.file.path == "-" {
		return ""
	}
	return strings.TrimSuffix(path.Base(r.file.path), path.Ext(r.file.path))
}

// warn reports a fact that the person should know.
func (r *reading) warn(at place, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if at.what != "" {
		text = at.what + ": " + text
	}
	r.report.warn(Warning{File: r.file.name, Line: at.line, Index: at.index, Text: text})
}

// warnHeld names the settings of a conversation that are held, since a file must not decide about them, each once: named has those that were named.
func (r *reading) warnHeld(title string, named map[string]bool, sets ...map[string]json.RawMessage) {
	var held []string
	for _, set := range sets {
		_, list := settings.Hold(set)
		for _, name := range list {
			if !named[name] {
				named[name], held = true, append(held, name)
			}
		}
	}
	if len(held) > 0 {
		r.warn(place{}, "these settings of %q are held back: %s; chatctx config --accept shows and takes them", show.Clip(title, 60), strings.Join(held, ", "))
	}
}

// skip reports n records that should have been messages and are left out, and why.
func (r *reading) skip(n int, at place, format string, args ...any) {
	r.report.Skipped += n
	r.warn(at, format, args...)
}

// skipContext reports a conversation that is left out as a whole, with the number of its messages as far as known.
func (r *reading) skipContext(messages int, at place, format string, args ...any) {
	r.report.SkippedContexts++
	r.skip(messages, at, format, args...)
}

// repaired reports a message that was stored only after a change.
func (r *reading) repaired(at place, format string, args ...any) {
	r.report.Repaired++
	r.warn(at, format, args...)
}

// structural counts records without a message of their own: an empty root, a progress line.
func (r *reading) structural(n int) { r.report.Structural += n }

// duplicated counts a record that repeats a message of the same import.
func (r *reading) duplicated() { r.report.Duplicated++ }

// eachItem reads the file as an array, or as consecutive values, and calls f for each valid one; it reports others as skipped contexts. descend names the key
// of an outer object that may hold the array; "" means none. The value becomes invalid when f returns.
func (r *reading) eachItem(descend string, f func(at place, v value) error) error {
	if !r.head.first().get(descend).is(arrayKind) {
		descend = ""
	}
	if descend == "" && r.head.lined {
		return r.lines(r.limits.Item, func(at place, format string, args ...any) { r.skipContext(0, at, format, args...) }, f)
	}
	s := splitter{r: r.buf, max: r.limits.Item, size: int(max(r.file.size, 0))}
	if r.large != nil && r.shelf != nil {
		s.inMemory, s.large = r.limits.Memory, func(i int) error { return r.large(atIndex(i), &s) }
	}
	err := s.each(descend, func(i int, text []byte, err error) error {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if err == errTooLarge {
			r.skipContext(0, atIndex(i), "an item of more than %d MB is left out", r.limits.Item>>20)
			return nil
		}
		v, rest, perr := r.parse(atIndex(i), text)
		switch {
		case err != nil:
			r.skipContext(0, atIndex(i), "the file ends in the middle of this item, which is left out")
			return nil
		case perr != nil:
			r.skipContext(0, atIndex(i), "the item is left out: %s", notRead(perr))
			return nil
		case len(bytes.TrimSpace(rest)) > 0:
			r.warn(atIndex(i), "something follows the item on its line and is left out")
		}
		return f(atIndex(i), v)
	})
	if len(s.beside) > 0 {
		for i := range s.beside {
			s.beside[i] = show.Clip(s.beside[i], 40)
		}
		r.warn(place{}, "keys beside the conversations are left out: %s", strings.Join(s.beside, ", "))
	}
	if err == io.ErrUnexpectedEOF {
		err = errors.New("the file is cut off: it ends inside the list")
	}
	return err
}

// eachLine reads JSON Lines and calls f for each object. A line may have several, without separators; NULs around them are ignored. A line that is over the
// limit, not JSON or not an object is reported and counted as skipped. The value becomes invalid when f returns.
func (r *reading) eachLine(f func(at place, v value) error) error {
	return r.lines(r.limits.Line, func(at place, format string, args ...any) { r.skip(1, at, format, args...) }, func(at place, v value) error {
		if !v.is(objectKind) {
			r.skip(1, at, "the line is %s instead of an object and is left out", v.kind())
			return nil
		}
		return f(at, v)
	})
}

// lines calls f for the values on each line, and bad for a line that has none or is over the limit. Of a line that begins with the beginning of a record, as
// programs leave it that died or wrote at once, it reads the whole record after that.
func (r *reading) lines(limit int, bad func(at place, format string, args ...any), f func(at place, v value) error) error {
	l, seen := liner{r: r.buf, max: limit}, beginnings(nil)
	var zeros []int // lines of NUL bytes, which are no loss at the end of a file: a program that died had room for more there
	for {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		line, err := l.next()
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, errTooLarge):
			bad(atLine(l.line), "the line is left out: %v", err)
			continue
		case err != nil:
			return err
		}
		blank := len(bytes.Trim(line, " \t")) == 0
		if line = bytes.Trim(line, " \t\x00"); len(line) == 0 && !blank {
			zeros = append(zeros, l.line)
		}
		for ; len(line) > 0 && len(zeros) > 0; zeros = zeros[1:] {
			bad(atLine(zeros[0]), "the line is left out: it is NUL bytes, as a power loss leaves them")
		}
		for n := 0; len(line) > 0; n++ {
			v, rest, err := r.parse(atLine(l.line), line)
			if err != nil {
				bad(atLine(l.line), "the line is left out: %s", notRead(err))
				if line = seen.wholeAtEnd(line, err); len(line) > 0 {
					r.repaired(atLine(l.line), "the whole record at the end of the line is read all the same")
				}
				n--
				continue
			}
			seen.add(v)
			if n == 1 {
				r.repaired(atLine(l.line), "the line has several objects; each is read")
			}
			line = bytes.Trim(rest, " \t\x00")
			if err := f(atLine(l.line), v); err != nil {
				return err
			}
		}
	}
}

// beginnings are the first keys of a file's records.
type beginnings []string

func (b *beginnings) add(v value) {
	for key := range v.members() {
		if len(*b) < 16 && !slices.Contains(*b, key) {
			*b = append(*b, strings.Clone(key))
		}
		return
	}
}

// wholeAtEnd returns the records with which a line ends that is no JSON, nil if there are none: they begin as others of the file do. In a line that ends too
// early, what begins so is a part of the torn record.
func (b beginnings) wholeAtEnd(line []byte, err error) []byte {
	var e *syntaxError
	if errors.As(err, &e) && e.what == errTruncated {
		return nil
	}
	first, tries := len(line), 64 // each may cost a reading of the line
	for _, key := range b {
		start := append(strconv.AppendQuote([]byte{'{'}, key), ':')
		for at := 0; tries > 0; tries-- {
			i := bytes.Index(line[at+1:first], start)
			if i < 0 {
				break
			}
			if at += 1 + i; areValues(line[at:]) {
				first = at
				break
			}
		}
	}
	return line[first:]
}

// areValues reports whether a text is JSON values, one after the other.
func areValues(text []byte) bool {
	in := json.NewDecoder(bytes.NewReader(text))
	for {
		var one json.RawMessage
		if err := in.Decode(&one); err != nil {
			return err == io.EOF
		}
	}
}

// damage reports once that a record was invalid Unicode and was repaired. It reports whether the raw record must be kept.
func (r *reading) damage(at place, v value) bool {
	bad := v.broken()
	if bad {
		r.repaired(at, "half characters or bytes that are not UTF-8 are replaced; the record is kept as it came")
	}
	return bad
}

// maxRepeated is how many repeated keys of a record are named.
const maxRepeated = 5

// parse parses a record of the file, and warns of its repeated keys. The value becomes invalid with the next call.
func (r *reading) parse(at place, text []byte) (v value, rest []byte, err error) {
	v, rest, err = r.doc.parse(text, false)
	if err == nil {
		r.repeatedKeys(at, v)
	}
	return v, rest, err
}

// repeatedKeys warns of the keys that an object of a record has more than once, at any depth. Of the store's own format, decoded names them.
func (r *reading) repeatedKeys(at place, v value) {
	if v.d == nil || r.format == nativeName {
		return
	}
	var paths []string
	all := 0
	for i := v.i; i < v.tok().next; i++ {
		for _, k := range (value{v.d, i}).repeated() {
			if all++; all <= maxRepeated {
				paths = append(paths, quoteClip(v.pathTo(i, k), 120))
			}
		}
	}
	switch {
	case all == 1:
		r.warn(at, "the key %s occurs more than once; the last one counts", paths[0])
	case all > 1:
		r.warn(at, "%d keys occur more than once, and the last of each counts: %s", all, strings.Join(paths, ", "))
	}
}

// repeatedArguments warns of the keys that occur more than once in arguments that a record has as a string of JSON. Arguments that it has as JSON itself were
// examined with the record.
func (s *sieve) repeatedArguments(r *reading, at place, calls []pool.Call, records ...value) {
	for i := range calls {
		c := &calls[i]
		v, _, err := s.doc.parse(c.Arguments, false)
		if err != nil || !v.repeats() || slices.ContainsFunc(records, func(of value) bool { return bytes.Contains(of.raw(), c.Arguments) }) {
			continue
		}
		r.repeatedKeys(at.in(fmt.Sprintf("the arguments of the call %q", show.Clip(c.ID, 60))), v)
	}
}

func quoteClip(s string, n int) string { return strconv.Quote(show.Clip(s, n)) }

// whichKeys says which keys an object has first.
func whichKeys(v value) string {
	if list := keyList(v); list != "" {
		return "the keys " + list
	}
	return "no keys"
}

// keyList returns an object's first keys.
func keyList(v value) string {
	var keys []string
	for k := range v.members() {
		if len(keys) == 6 {
			keys = append(keys, "…")
			break
		}
		keys = append(keys, show.Clip(k, 40))
	}
	return strings.Join(keys, ", ")
}
