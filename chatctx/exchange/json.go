package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
)

// kind is the kind of a JSON value; absent means that there is none.
type kind uint8

const (
	absent kind = iota
	nullKind
	boolKind
	numberKind
	stringKind
	arrayKind
	objectKind
)

func (k kind) String() string {
	return [...]string{"nothing", "null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// token is a value of a document: its bytes, and the index of the token after it and everything in it. An object's members are alternately a string token (the
// key) and the value's.
type token struct {
	start, end uint32
	next       uint32
	kind       kind
	escaped    bool // it is a string with escapes
	used       bool // its content was taken: a number or boolean that was read, or a value that was kept whole
}

// document is parsed JSON text. Parsing copies nothing: strings and numbers are decoded when they are read. A document can be reused for other text, which
// makes the values of the earlier text invalid.
type document struct {
	text   []byte
	tokens []token
	open   []uint32 // the containers around the current place
	broken []uint32 // the starts of strings that are not valid Unicode, ascending
	utf8   bool     // the whole text is valid
}

// syntaxError says where JSON text is invalid.
type syntaxError struct {
	offset int
	what   string
	open   bool // the text before the place is valid as far as it goes
}

// tooDeep begins the what of a syntaxError for brackets in too many others.
const tooDeep = "brackets"

// deep reports whether the text may be valid, but is nested too deeply.
func (e *syntaxError) deep() bool { return strings.HasPrefix(e.what, tooDeep) }

// notRead says why text was not read as JSON.
func notRead(err error) string {
	var e *syntaxError
	if errors.As(err, &e) && e.deep() {
		return err.Error()
	}
	return "not JSON: " + err.Error()
}

func (e *syntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.what, e.offset) }

// errTruncated is the what of a syntaxError for a text that ends too early.
const errTruncated = "the JSON ends too early"

// maxDocument bounds a document, since token offsets have 32 bits.
const maxDocument = min(math.MaxUint32-1, math.MaxInt)

// maxDepth bounds nesting, as messages do for the JSON that they keep.
const maxDepth = 1000

// parse parses one JSON value; rest is the text after it. With partial, text that ends too early or is nested too deeply is not an error: what is open is
// closed there, and an unfinished string, number or member is left out.
func (d *document) parse(text []byte, partial bool) (v value, rest []byte, err error) {
	if len(text) > maxDocument {
		return value{}, nil, &syntaxError{maxDocument, "a value of more than 4 GB", false}
	}
	d.text, d.tokens, d.open, d.broken = text, d.tokens[:0], d.open[:0], d.broken[:0]
	d.utf8 = utf8.Valid(text)
	end, err := d.scan()
	if e, ok := err.(*syntaxError); ok && partial && e.open {
		end, err = len(text), d.closeAll()
	}
	if err != nil {
		return value{}, nil, err
	}
	return value{d, 0}, text[end:], nil
}

// openPath returns the path of the first containers that are open: keys joined by points, and indexes of items.
func (d *document) openPath() string {
	const most = 8
	path := ""
	for k := 1; k < len(d.open) && k <= most; k++ {
		outer, inner := d.open[k-1], d.open[k]
		if d.tokens[outer].kind == objectKind {
			path += "." + value{d, inner - 1}.str()
			continue
		}
		n := 0
		for i := outer + 1; i < inner; i = d.tokens[i].next {
			n++
		}
		path += fmt.Sprintf("[%d]", n)
	}
	return strings.TrimPrefix(path, ".")
}

// closeAll closes what is open at the end of the text.
func (d *document) closeAll() error {
	if len(d.open) == 0 {
		return &syntaxError{len(d.text), errTruncated, true}
	}
	if i := d.open[len(d.open)-1]; d.tokens[i].kind == objectKind && d.oddMembers(i) {
		d.tokens = d.tokens[:len(d.tokens)-1]
	}
	for _, i := range d.open {
		d.tokens[i].end, d.tokens[i].next = uint32(len(d.text)), uint32(len(d.tokens))
	}
	return nil
}

// oddMembers reports whether the last key of the open object i has no value.
func (d *document) oddMembers(i uint32) bool {
	n := 0
	for j := i + 1; j < uint32(len(d.tokens)); j = d.tokens[j].next {
		n++
	}
	return n%2 == 1
}

// scan reads one value at the beginning of the text and returns the offset after it.
func (d *document) scan() (int, error) {
	p := skipSpace(d.text, 0)
	for {
		var err error
		if p, err = d.scanValue(p); err != nil {
			return p, err
		}
		for { // after a value: close containers until one has another value
			if len(d.open) == 0 {
				return p, nil
			}
			more := false
			if p, more, err = d.afterValue(p); err != nil {
				return p, err
			}
			if more {
				break
			}
		}
	}
}

// scanValue reads a scalar, or opens containers up to the first scalar or empty container in them.
func (d *document) scanValue(p int) (int, error) {
	for {
		if p >= len(d.text) {
			return p, &syntaxError{p, errTruncated, true}
		}
		c := d.text[p]
		if c != '{' && c != '[' {
			return d.scanScalar(p)
		}
		k, closer := objectKind, byte('}')
		if c == '[' {
			k, closer = arrayKind, ']'
		}
		if len(d.open) == maxDepth {
			return p, &syntaxError{p, fmt.Sprintf("%s nested deeper than %d, in %q", tooDeep, maxDepth, show.Clip(d.openPath(), 120)), true}
		}
		d.open = append(d.open, uint32(len(d.tokens)))
		d.tokens = append(d.tokens, token{start: uint32(p), kind: k})
		if p = skipSpace(d.text, p+1); p < len(d.text) && d.text[p] == closer {
			return d.closeOne(p), nil
		}
		if k == objectKind {
			var err error
			if p, err = d.scanKey(p); err != nil {
				return p, err
			}
		}
	}
}

// closeOne closes the innermost container, whose closing bracket is at p.
func (d *document) closeOne(p int) int {
	t := &d.tokens[d.open[len(d.open)-1]]
	d.open = d.open[:len(d.open)-1]
	t.end, t.next = uint32(p+1), uint32(len(d.tokens))
	return p + 1
}

// afterValue reads what follows a value in its container: a comma and, in an object, the next key (more is true then), or the end.
func (d *document) afterValue(p int) (_ int, more bool, err error) {
	if p = skipSpace(d.text, p); p >= len(d.text) {
		return p, false, &syntaxError{p, errTruncated, true}
	}
	object := d.tokens[d.open[len(d.open)-1]].kind == objectKind
	switch c := d.text[p]; {
	case c == ',':
		p = skipSpace(d.text, p+1)
		if object {
			p, err = d.scanKey(p)
		}
		return p, true, err
	case c == '}' && object, c == ']' && !object:
		return d.closeOne(p), false, nil
	}
	return p, false, &syntaxError{p, "a comma or the end of " + d.tokens[d.open[len(d.open)-1]].kind.String() + " is missing", false}
}

func (d *document) scanKey(p int) (int, error) {
	if p >= len(d.text) {
		return p, &syntaxError{p, errTruncated, true}
	}
	if d.text[p] != '"' {
		return p, &syntaxError{p, "a key is missing", false}
	}
	p, err := d.scanString(p)
	if err != nil {
		return p, err
	}
	if p = skipSpace(d.text, p); p >= len(d.text) {
		return p, &syntaxError{p, errTruncated, true}
	}
	if d.text[p] != ':' {
		return p, &syntaxError{p, "a colon is missing", false}
	}
	return skipSpace(d.text, p+1), nil
}

func (d *document) scanScalar(p int) (int, error) {
	switch c := d.text[p]; {
	case c == '"':
		return d.scanString(p)
	case c == '-' || c >= '0' && c <= '9':
		return d.scanNumber(p)
	case c == 't':
		return d.scanWord(p, "true", boolKind)
	case c == 'f':
		return d.scanWord(p, "false", boolKind)
	case c == 'n':
		return d.scanWord(p, "null", nullKind)
	}
	return p, &syntaxError{p, fmt.Sprintf("no value begins with %q", d.text[p]), false}
}

func (d *document) add(start, end int, k kind, escaped bool) int {
	d.tokens = append(d.tokens, token{uint32(start), uint32(end), uint32(len(d.tokens) + 1), k, escaped, false})
	return end
}

func (d *document) scanWord(p int, word string, k kind) (int, error) {
	have := d.text[p:min(p+len(word), len(d.text))]
	if string(have) == word {
		return d.add(p, p+len(word), k, false), nil
	}
	if len(have) < len(word) && word[:len(have)] == string(have) {
		return p, &syntaxError{p, errTruncated, true}
	}
	return p, &syntaxError{p, fmt.Sprintf("no value begins with %q", d.text[p]), false}
}

func (d *document) scanNumber(p int) (int, error) {
	q := p
	for q < len(d.text) && numberByte[d.text[q]] {
		q++
	}
	if q == len(d.text) && len(d.open) > 0 {
		return q, &syntaxError{q, errTruncated, true}
	}
	if !validNumber(d.text[p:q]) {
		return p, &syntaxError{p, "a bad number", false}
	}
	return d.add(p, q, numberKind, false), nil
}

var numberByte = func() (t [256]bool) {
	for _, c := range []byte("+-.0123456789eE") {
		t[c] = true
	}
	return t
}()

// validNumber reports whether b is a JSON number.
func validNumber(b []byte) bool {
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	whole := digits(b)
	if whole == 0 || whole > 1 && b[0] == '0' {
		return false
	}
	b = b[whole:]
	if len(b) > 0 && b[0] == '.' {
		n := digits(b[1:])
		if n == 0 {
			return false
		}
		b = b[1+n:]
	}
	if len(b) > 0 && (b[0] == 'e' || b[0] == 'E') {
		b = b[1:]
		if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
			b = b[1:]
		}
		n := digits(b)
		return n > 0 && n == len(b)
	}
	return len(b) == 0
}

func digits(b []byte) int {
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	return n
}

// scanString reads the string that begins at p and records whether it has escapes and is valid Unicode.
func (d *document) scanString(p int) (int, error) {
	start, escaped, lone := p, false, false
	for p++; ; {
		n := plainRun(d.text[p:])
		if p += n; p >= len(d.text) {
			return p, &syntaxError{p, errTruncated, true}
		}
		switch c := d.text[p]; {
		case c == '"':
			if lone || !d.utf8 && !utf8.Valid(d.text[start:p]) {
				d.broken = append(d.broken, uint32(start))
			}
			return d.add(start, p+1, stringKind, escaped), nil
		case c == '\\':
			escaped = true
			n, bad, err := scanEscape(d.text, p)
			if err != nil {
				return p, err
			}
			p, lone = p+n, lone || bad
		default:
			return p, &syntaxError{p, fmt.Sprintf("a raw control character %#02x in a string", c), false}
		}
	}
}

// plainRun returns the number of bytes before the first quote, backslash or control character.
func plainRun(b []byte) int {
	for i, c := range b {
		if special[c] {
			return i
		}
	}
	return len(b)
}

var special = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = true
	}
	t['"'], t['\\'] = true, true
	return t
}()

// scanEscape returns the length of the escape at p (a surrogate pair is one), and whether it is half of a pair.
func scanEscape(b []byte, p int) (n int, lone bool, err error) {
	if p+1 >= len(b) {
		return 0, false, &syntaxError{len(b), errTruncated, true}
	}
	switch b[p+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, false, nil
	case 'u':
		if p+6 > len(b) {
			return 0, false, &syntaxError{len(b), errTruncated, true}
		}
		r := hex4(b[p+2:])
		if r < 0 {
			return 0, false, &syntaxError{p, "a bad \\u escape", false}
		}
		if !utf16.IsSurrogate(r) {
			return 6, false, nil
		}
		if pair(b[p:]) != utf8.RuneError {
			return 12, false, nil
		}
		return 6, true, nil
	}
	return 0, false, &syntaxError{p, "a bad escape", false}
}

// hex4 parses four hex digits, or returns -1.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 32)
	if err != nil {
		return -1
	}
	return rune(n)
}

// pair decodes two \u escapes that are a surrogate pair, or returns U+FFFD.
func pair(b []byte) rune {
	if len(b) < 12 || b[6] != '\\' || b[7] != 'u' {
		return utf8.RuneError
	}
	return utf16.DecodeRune(hex4(b[2:]), hex4(b[8:]))
}

func skipSpace(b []byte, p int) int {
	for p < len(b) && (b[p] == ' ' || b[p] == '\n' || b[p] == '\r' || b[p] == '\t') {
		p++
	}
	return p
}

// value is a value of a document. The zero value is absent, and every method works for any value: for one of the wrong kind it returns nothing. It becomes
// invalid when the document parses other text.
type value struct {
	d *document
	i uint32
}

func (v value) tok() token {
	if v.d == nil {
		return token{}
	}
	return v.d.tokens[v.i]
}

func (v value) kind() kind     { return v.tok().kind }
func (v value) is(k kind) bool { return v.kind() == k }

// has reports whether the value is an object with that key, even if its value is null.
func (v value) has(key string) bool { return v.get(key).d != nil }

// raw returns the value's text, which is a part of the document's: clone it to keep it.
func (v value) raw() []byte {
	if v.d == nil {
		return nil
	}
	t := v.tok()
	return v.d.text[t.start:t.end]
}

// taken marks the content of the value, with everything in it, as taken.
func (v value) taken() {
	if v.d != nil {
		v.d.tokens[v.i].used = true
	}
}

// keep takes the whole value: it returns a copy of its text as valid JSON in UTF-8, on one line; nil if it is absent.
func (v value) keep() json.RawMessage {
	v.taken()
	return v.copied()
}

// copied returns what keep returns, without taking it.
func (v value) copied() json.RawMessage {
	if v.d == nil {
		return nil
	}
	text := v.raw()
	if !v.d.utf8 {
		s, _ := repairUTF8(text)
		text = []byte(s)
	}
	if bytes.IndexByte(text, '\n') >= 0 {
		var b bytes.Buffer
		if json.Compact(&b, text) == nil {
			return b.Bytes()
		}
	}
	return bytes.Clone(text)
}

// get returns the member with exactly that key, the last one of several, or an absent value.
func (v value) get(key string) value {
	var found value
	if v.kind() != objectKind {
		return found
	}
	end := v.tok().next
	for i := v.i + 1; i < end; {
		if v.d.keyIs(i, key) {
			found = value{v.d, i + 1}
		}
		i = v.d.tokens[i+1].next
	}
	return found
}

// at follows a path of keys.
func (v value) at(keys ...string) value {
	for _, k := range keys {
		v = v.get(k)
	}
	return v
}

func (d *document) keyIs(i uint32, key string) bool {
	t := d.tokens[i]
	if t.escaped || !d.utf8 {
		return value{d, i}.str() == key
	}
	return string(d.text[t.start+1:t.end-1]) == key
}

// members returns an object's members in the order of the text, including repeated keys.
func (v value) members() iter.Seq2[string, value] {
	return func(yield func(string, value) bool) {
		if v.kind() != objectKind {
			return
		}
		end := v.tok().next
		for i := v.i + 1; i < end; i = v.d.tokens[i+1].next {
			if !yield(value{v.d, i}.str(), value{v.d, i + 1}) {
				return
			}
		}
	}
}

// fields is members with the keys as values.
func (v value) fields() iter.Seq2[value, value] {
	return func(yield func(value, value) bool) {
		if v.kind() != objectKind {
			return
		}
		end := v.tok().next
		for i := v.i + 1; i < end; i = v.d.tokens[i+1].next {
			if !yield(value{v.d, i}, value{v.d, i + 1}) {
				return
			}
		}
	}
}

// items returns an array's items.
func (v value) items() iter.Seq[value] {
	return func(yield func(value) bool) {
		if v.kind() != arrayKind {
			return
		}
		end := v.tok().next
		for i := v.i + 1; i < end; i = v.d.tokens[i].next {
			if !yield(value{v.d, i}) {
				return
			}
		}
	}
}

// list returns an array's items.
func (v value) list() []value {
	var out []value
	for it := range v.items() {
		out = append(out, it)
	}
	return out
}

// clone returns the same value in a new document, so that it stays valid.
func (v value) clone() value {
	c, _, err := new(document).parse(bytes.Clone(v.raw()), false)
	if err != nil {
		return value{} // what was parsed once can be parsed again
	}
	return c
}

// len returns the number of items or members.
func (v value) len() int {
	n := 0
	if v.kind() == arrayKind {
		for range v.items() {
			n++
		}
	} else {
		for range v.members() {
			n++
		}
	}
	return n
}

// first returns the first item of an array.
func (v value) first() value {
	for it := range v.items() {
		return it
	}
	return value{}
}

// str returns a string's text, always valid UTF-8; "" for any other kind.
func (v value) str() string {
	t := v.tok()
	if t.kind != stringKind {
		return ""
	}
	if !t.escaped && v.d.utf8 {
		return string(v.d.text[t.start+1 : t.end-1])
	}
	return string(v.bytes(&[]byte{}))
}

// bytes is str without an allocation: a part of the document's text, or decoded into the buffer.
func (v value) bytes(buf *[]byte) []byte {
	t := v.tok()
	if t.kind != stringKind {
		return nil
	}
	b := v.d.text[t.start+1 : t.end-1]
	if t.escaped {
		*buf = unescape((*buf)[:0], b)
		b = *buf
	}
	if !v.d.utf8 && !utf8.Valid(b) {
		s, _ := repairUTF8(b)
		b = []byte(s)
	}
	return b
}

// unescape appends a string's text to out with its escapes resolved; half of a surrogate pair becomes U+FFFD.
func unescape(out, b []byte) []byte {
	out = slices.Grow(out, len(b))
	for p := 0; p < len(b); {
		n := bytes.IndexByte(b[p:], '\\')
		if n < 0 {
			return append(out, b[p:]...)
		}
		out = append(out, b[p:p+n]...)
		p += n
		if b[p+1] != 'u' {
			out, p = append(out, plainEscape(b[p+1])), p+2
			continue
		}
		r, n := hex4(b[p+2:]), 6
		if utf16.IsSurrogate(r) {
			if r = pair(b[p:]); r != utf8.RuneError {
				n = 12
			}
		}
		out, p = utf8.AppendRune(out, r), p+n
	}
	return out
}

func plainEscape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// repairUTF8 returns valid UTF-8: a surrogate pair that was encoded in two halves (CESU-8) becomes its character, any other invalid byte U+FFFD. changed
// reports whether anything was repaired.
func repairUTF8(b []byte) (s string, changed bool) {
	if utf8.Valid(b) {
		return string(b), false
	}
	out := make([]byte, 0, len(b)+8)
	for p := 0; p < len(b); {
		r, n := utf8.DecodeRune(b[p:])
		if r != utf8.RuneError || n > 1 {
			out, p = append(out, b[p:p+n]...), p+n
			continue
		}
		hi, lo := surrogate(b[p:]), surrogate(b[min(p+3, len(b)):])
		n = 1
		if r = utf16.DecodeRune(hi, lo); r != utf8.RuneError {
			n = 6
		} else if hi != 0 {
			n = 3
		}
		out, p = utf8.AppendRune(out, r), p+n
	}
	return string(out), true
}

// surrogate decodes a surrogate that is encoded as three bytes, or returns 0.
func surrogate(b []byte) rune {
	if len(b) < 3 || b[0] != 0xED || b[1] < 0xA0 || b[1] > 0xBF || b[2]&0xC0 != 0x80 {
		return 0
	}
	return 0xD000 | rune(b[1]&0x3F)<<6 | rune(b[2]&0x3F)
}

// broken reports whether a string in the value, or a key, is not valid Unicode.
func (v value) broken() bool {
	if v.d == nil || len(v.d.broken) == 0 {
		return false
	}
	t := v.tok()
	i := sort.Search(len(v.d.broken), func(i int) bool { return v.d.broken[i] >= t.start })
	return i < len(v.d.broken) && v.d.broken[i] < t.end
}

// bool returns whether the value is true.
func (v value) bool() bool {
	if v.kind() != boolKind {
		return false
	}
	v.taken()
	return v.raw()[0] == 't'
}

// int returns a whole number, also from a string or from 5.0.
func (v value) int() (int64, bool) {
	s := v.numberText()
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	f, ok := v.float()
	if !ok || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}

// float returns a number, also from a string.
func (v value) float() (float64, bool) {
	s := v.numberText()
	if s == "" || !validNumber([]byte(s)) {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

func (v value) numberText() string {
	switch v.kind() {
	case numberKind:
		v.taken()
		return string(v.raw())
	case stringKind:
		return v.str()
	}
	return ""
}

// count returns a number of tokens: nil unless it is a whole number of at least 0.
func (v value) count() *int64 {
	n, ok := v.int()
	if !ok || n < 0 || v.kind() != numberKind {
		return nil
	}
	return &n
}

// repeated returns the keys that an object has more than once.
func (v value) repeated() []string {
	if v.kind() != objectKind || !v.mayRepeat() {
		return nil
	}
	seen := make(map[string]int)
	var twice []string
	for k := range v.members() {
		if seen[k]++; seen[k] == 2 {
			twice = append(twice, k)
		}
	}
	return twice
}

// repeats reports whether an object in the value, or the value, has a key more than once.
func (v value) repeats() bool {
	for i := v.i; i < v.tok().next; i++ {
		if (value{v.d, i}).repeated() != nil {
			return true
		}
	}
	return false
}

// mayRepeat reports whether an object could have a key more than once. It is false for an object of a few members, as most are, whose keys differ and have no
// escapes, so that a map is needed only for the others.
func (v value) mayRepeat() bool {
	const few = 32
	var alike [4]uint64 // a bit for each look of a key
	n, end := 0, v.tok().next
	for i := v.i + 1; i < end; i = v.d.tokens[i+1].next {
		t := v.d.tokens[i]
		if n++; t.escaped || n > few {
			return n > 1 || t.next < end
		}
		key := v.d.text[t.start+1 : t.end]
		look := uint(len(key))*31 + uint(key[0])*7 + uint(key[len(key)/2])*13 + uint(key[max(0, len(key)-2)])*3
		word, bit := look>>6&3, uint64(1)<<(look&63)
		if alike[word]&bit != 0 && v.stoodBefore(i) {
			return true
		}
		alike[word] |= bit
	}
	return false
}

// stoodBefore reports whether a key before the one at i has the same bytes.
func (v value) stoodBefore(i uint32) bool {
	t := v.d.tokens[i]
	for j := v.i + 1; j < i; j = v.d.tokens[j+1].next {
		u := v.d.tokens[j]
		if u.end-u.start == t.end-t.start && bytes.Equal(v.d.text[u.start:u.end], v.d.text[t.start:t.end]) {
			return true
		}
	}
	return false
}

// pathTo returns the path from a value to the member k of the object at token i in it: keys joined by points, and indexes of items.
func (v value) pathTo(i uint32, k string) string {
	path := ""
	for v.i != i {
		n := 0
		for it := range v.items() {
			if it.i <= i && i < it.tok().next {
				path, v = fmt.Sprintf("%s[%d]", path, n), it
				break
			}
			n++
		}
		for key, x := range v.members() {
			if x.i <= i && i < x.tok().next {
				path, v = path+"."+key, x
				break
			}
		}
	}
	return strings.TrimPrefix(path+"."+k, ".")
}
