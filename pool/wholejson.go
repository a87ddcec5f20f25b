package pool

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// WholeJSON gives valid JSON with what no strict reader takes replaced by U+FFFD: halves of surrogate pairs, bytes that are no UTF-8. n is how many there were; where there
// were none it is raw itself. All other bytes stay.
func WholeJSON(raw json.RawMessage) (whole json.RawMessage, n int) {
	start := 0
	replace := func(from, to int, with string) {
		whole = append(append(whole, raw[start:from]...), with...)
		start = to
		n++
	}
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '\\':
			size, half := escape(raw[i:])
			if half {
				replace(i, i+size, `\ufffd`)
			}
			i += size
		case c < utf8.RuneSelf:
			i++
		default:
			r, size := utf8.DecodeRune(raw[i:])
			if r == utf8.RuneError && size == 1 {
				replace(i, i+1, "\uFFFD")
			}
			i += size
		}
	}
	if n == 0 {
		return raw, 0
	}
	return append(whole, raw[start:]...), n
}

// escape is the length of the escape at the beginning of raw, a surrogate pair being one, and whether it is half of a pair.
func escape(raw []byte) (size int, half bool) {
	unit := func(at int) uint64 {
		if len(raw) < at+6 || raw[at] != '\\' || raw[at+1] != 'u' {
			return 0
		}
		v, _ := strconv.ParseUint(string(raw[at+2:at+6]), 16, 32) // what is no number is no JSON
		return v
	}
	switch high := unit(0); {
	case len(raw) < 6 || raw[1] != 'u':
		return min(2, len(raw)), false
	case high < 0xd800 || high > 0xdfff:
		return 6, false
	case high < 0xdc00 && unit(6) >= 0xdc00 && unit(6) <= 0xdfff:
		return 12, false
	}
	return 6, true
}

// MakeWhole makes all JSON values of a message whole, as WholeJSON does, and says how many places had to change. It is for what comes from outside, before it is stored: what leaves
// is then taken by strict readers.
func (m *Message) MakeWhole() int {
	changed := 0
	whole := func(raw *json.RawMessage) {
		var n int
		*raw, n = WholeJSON(*raw)
		changed += n
	}
	values := func(named map[string]json.RawMessage) {
		for name, raw := range named {
			if fixed, n := WholeJSON(raw); n > 0 {
				named[name] = fixed
				changed += n
			}
		}
	}
	parts := func(list []Part) {
		for i := range list {
			whole(&list[i].Raw)
		}
	}
	parts(m.Content)
	for i := range m.Calls {
		whole(&m.Calls[i].Arguments)
		whole(&m.Calls[i].Raw)
	}
	if m.Result != nil {
		whole(&m.Result.JSON)
		parts(m.Result.Parts)
	}
	whole(&m.Meta.Usage)
	values(m.AppData)
	values(m.Meta.ProviderData)
	return changed
}
