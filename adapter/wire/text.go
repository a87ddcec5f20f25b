package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// Text is a JSON text of an event that may contain half a character: half of a surrogate pair, or some of the bytes of a character. The other half comes with
// the next event. Join pieces unchanged, and let Whole make text of them.
//
// A half is stored as UTF-8 would encode its unit, and so is a byte that is not UTF-8, which escapeBytes wrote as an escape from \udc80 to \udcff.
type Text string

// UnmarshalJSON reads a JSON text; null is none. Any other value is an *json.UnmarshalTypeError, which Decode ignores.
func (t *Text) UnmarshalJSON(raw []byte) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if raw[0] != '"' {
		return &json.UnmarshalTypeError{Value: "value", Type: reflect.TypeFor[Text]()}
	}
	if !bytes.Contains(raw, []byte(`\ud`)) && !bytes.Contains(raw, []byte(`\uD`)) {
		return json.Unmarshal(raw, (*string)(t))
	}
	out := make([]byte, 0, len(raw))
	for i := 1; i < len(raw)-1; {
		if unit, ok := surrogate(raw[i:]); ok {
			out, i = appendUnit(out, unit), i+6
			continue
		}
		next := i + 1
		if raw[i] == '\\' {
			if next++; raw[i+1] == 'u' {
				next += 4
			}
			var s string
			if err := json.Unmarshal(fmt.Appendf(nil, `"%s"`, raw[i:next]), &s); err != nil {
				return err
			}
			out = append(out, s...)
		} else {
			out = append(out, raw[i])
		}
		i = next
	}
	*t = Text(out)
	return nil
}

// surrogate reads an escape that is one half of a pair.
func surrogate(raw []byte) (unit rune, ok bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(string(raw[2:6]), 16, 32)
	return rune(v), err == nil && v >= 0xd800 && v <= 0xdfff
}

// appendUnit appends a half as UTF-8 would encode it.
func appendUnit(b []byte, unit rune) []byte {
	return append(b, 0xe0|byte(unit>>12), 0x80|byte(unit>>6)&0xbf, 0x80|byte(unit)&0xbf)
}

// unitAt returns the half at the beginning of b, 0 if there is none.
func unitAt(b []byte) rune {
	if len(b) < 3 || b[0] != 0xed || b[1] < 0xa0 || b[1] > 0xbf || b[2]&0xc0 != 0x80 {
		return 0
	}
	return 0xd000 | rune(b[1]&0x3f)<<6 | rune(b[2]&0x3f)
}

// isByte reports whether the unit stands for a byte that was not UTF-8.
func isByte(unit rune) bool { return unit >= 0xdc80 && unit <= 0xdcff }

// Whole returns the text of joined pieces: matching halves become one character, any other half becomes U+FFFD.
func Whole(pieces []byte) string {
	if utf8.Valid(pieces) {
		return string(pieces)
	}
	out := make([]byte, 0, len(pieces))
	for i := 0; i < len(pieces); {
		unit := unitAt(pieces[i:])
		switch low := unitAt(pieces[min(i+3, len(pieces)):]); {
		case unit == 0:
			r, n := utf8.DecodeRune(pieces[i:])
			out = utf8.AppendRune(out, r)
			i += n
		case unit < 0xdc00 && low >= 0xdc00:
			out = utf8.AppendRune(out, 0x10000+(unit-0xd800)<<10+(low-0xdc00))
			i += 6
		case isByte(unit):
			var run []byte
			for ; isByte(unitAt(pieces[i:])); i += 3 {
				run = append(run, byte(unitAt(pieces[i:])-0xdc00))
			}
			out = append(out, bytes.ToValidUTF8(run, []byte("�"))...)
		default:
			out = append(out, "�"...)
			i += 3
		}
	}
	return string(out)
}

// heldBack returns how many bytes at the end of pieces may be the beginning of a character.
func heldBack(pieces string) int {
	n := len(pieces)
	if n >= 3 {
		if unit := unitAt([]byte(pieces[n-3:])); unit >= 0xd800 && unit < 0xdc00 {
			return 3
		}
	}
	from := n
	var run []byte
	for from >= 3 && n-from < 9 && isByte(unitAt([]byte(pieces[from-3:from]))) {
		from -= 3
		run = append([]byte{byte(unitAt([]byte(pieces[from:])) - 0xdc00)}, run...)
	}
	for i := range run { // the last beginning of a character that lacks some of its bytes
		if utf8.RuneStart(run[i]) && !utf8.FullRune(run[i:]) {
			return 3 * (len(run) - i)
		}
	}
	return 0
}

// escapeBytes writes bytes that are not UTF-8 as escapes, so that a JSON decoder does not replace them.
func escapeBytes(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	out := make([]byte, 0, len(data)+16)
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			out = fmt.Appendf(out, `\udc%02x`, data[i])
		} else {
			out = append(out, data[i:i+n]...)
		}
		i += n
	}
	return out
}

// joiner passes deltas on in whole characters: a possible beginning of one waits for the next piece of its type.
type joiner struct {
	out  func(Delta)
	held Delta
}

func (j *joiner) take(d Delta) {
	if d.Type != j.held.Type || d.Tool != "" {
		j.flush()
	}
	all := j.held.Text + d.Text
	cut := len(all) - heldBack(all)
	j.held = Delta{Type: d.Type, Text: all[cut:]}
	if d.Text = Whole([]byte(all[:cut])); d.Text != "" || d.Tool != "" {
		j.out(d)
	}
}

// flush passes on what waits, unchanged.
func (j *joiner) flush() {
	if j.held.Text != "" {
		j.out(Delta{Type: j.held.Type, Text: Whole([]byte(j.held.Text))})
	}
	j.held = Delta{}
}
