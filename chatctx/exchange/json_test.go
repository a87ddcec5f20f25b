package exchange

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
)

func parseFile(t *testing.T, path string) value {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := new(document).parse(text, false)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// plain converts a value to what encoding/json would give.
func plain(v value) any {
	switch v.kind() {
	case boolKind:
		return v.bool()
	case numberKind:
		return json.Number(v.raw())
	case stringKind:
		return v.str()
	case arrayKind:
		out := []any{}
		for it := range v.items() {
			out = append(out, plain(it))
		}
		return out
	case objectKind:
		out := map[string]any{}
		for k := range v.members() {
			out[k] = plain(v.get(k))
		}
		return out
	}
	return nil
}

// checkJSON compares the parser with encoding/json: both accept the same texts, with the same result.
func checkJSON(t *testing.T, text []byte) {
	t.Helper()
	v, rest, err := new(document).parse(text, false)
	ok := err == nil && skipSpace(rest, 0) == len(rest)
	if ok != json.Valid(text) {
		if err != nil && strings.Contains(err.Error(), "deep") {
			return
		}
		t.Fatalf("%q: read is %v (%v), encoding/json says %v", show.Clip(string(text), 200), ok, err, json.Valid(text))
	}
	if !ok || !utf8.Valid(text) {
		return
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var want any
	if err := d.Decode(&want); err != nil {
		t.Fatal(err)
	}
	if hasRepeated(v) {
		return // encoding/json merges repeated keys, here the last one counts
	}
	if got := plain(v); !reflect.DeepEqual(got, want) {
		t.Fatalf("%q:\n got %#v\nwant %#v", show.Clip(string(text), 200), got, want)
	}
}

func hasRepeated(v value) bool {
	if v.repeated() != nil {
		return true
	}
	for _, x := range v.members() {
		if hasRepeated(x) {
			return true
		}
	}
	for x := range v.items() {
		if hasRepeated(x) {
			return true
		}
	}
	return false
}

var jsonTexts = []string{
	`{"a":[1,-0.5e+3,true,false,null,"x"],"b":{}}`, `[]`, ` [ [ ] , { } ] `, `"\u00e9\ud83d\ude02\n\/"`, `"\ud83d"`, `"\udc00x"`, `1.`, `01`, `-`, `[1,]`, `{"a":1,}`,
	`{"a" 1}`, `{a:1}`, `[1 2]`, `nul`, `nullx`, `"a`, "\"\x01\"", "\"tab\t\"", `{"a":1,"a":2}`, `"\x"`, `"\u12"`, "\xef\xbb\xbf1", "[\"\xff\"]", `1e5`, `NaN`, `{"":""}`, ``,
	strings.Repeat("[", 999) + strings.Repeat("]", 999), strings.Repeat("[", 2000) + strings.Repeat("]", 2000),
}

func TestJSONAgreesWithEncodingJSON(t *testing.T) {
	for _, text := range jsonTexts {
		checkJSON(t, []byte(text))
	}
}

func FuzzJSON(f *testing.F) {
	for _, text := range jsonTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		checkJSON(t, text)
		new(document).parse(text, true)
	})
}

func TestPartialJSONKeepsWhatIsThere(t *testing.T) {
	text := `{"title":"x","mapping":{"a":{"id":"a","n":[1,2,{"k":"val"}]}},"z":12}`
	for n := range len(text) {
		v, _, err := new(document).parse([]byte(text[:n]), true)
		if n == 0 {
			continue
		}
		if err != nil {
			t.Fatalf("%q: %v", text[:n], err)
		}
		if got := v.get("mapping").is(objectKind); got != (n > strings.Index(text, `{"a"`)) {
			t.Errorf("%q: mapping found is %v", text[:n], got)
		}
		plain(v)
	}
}

func TestRepairUTF8(t *testing.T) {
	for in, want := range map[string]string{
		"fine ☕": "fine ☕", "\xed\xa0\xbd\xed\xb8\x82": "😂", "\xff": "�", "a\xed\xa0\xbdb": "a�b", "\xed\xb8\x82\xed\xa0\xbd": "��", "\xe2\x82": "��", "": "",
	} {
		got, changed := repairUTF8([]byte(in))
		if got != want || changed != (in != want) {
			t.Errorf("%q became %q (changed %v), want %q", in, got, changed, want)
		}
	}
}

func TestBrokenStringsAreFoundWhereTheyAre(t *testing.T) {
	v, _, err := new(document).parse([]byte(`{"good":["x","\ud83d\ude02"],"bad":{"k":["y","\ud83d"]},"after":"z"}`), false)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"good": false, "bad": true, "after": false} {
		if v.get(key).broken() != want {
			t.Errorf("%s: broken is %v", key, !want)
		}
	}
}

func TestRepeatedKeys(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"x":0`)
	for i := range 300 {
		fmt.Fprintf(&b, `,"k%d":%d`, i, i)
	}
	b.WriteString(`,"k7":1,"k7":2}`)
	for text, want := range map[string]string{`{"a":1,"b":2}`: "", `{"a":1,"b":2,"a":3}`: "a", `{"a":1,"":2,"\u0061":3}`: "a", b.String(): "k7"} {
		v, _, err := new(document).parse([]byte(text), false)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(v.repeated(), " "); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: repeated are %q", show.Clip(text, 60), got)
		}
	}
}

// TestSplitterCutsValues splits streams in any pieces, also one byte at a time.
func TestSplitterCutsValues(t *testing.T) {
	for text, want := range map[string][]string{
		`[{"a":"]}"},2,"x,]" , null,[1,[2]] ]`:                 {`{"a":"]}"}`, `2`, `"x,]"`, `null`, `[1,[2]]`},
		`{"a":1}{"b":"\\\""}` + "\n\x00\n[3]":                  {`{"a":1}`, `{"b":"\\\""}`, `3`},
		`{"skip":[0],"items":[1,{"items":[5]}],"after":"[7]"}`: {`1`, `{"items":[5]}`},
		`[1,,2,]`:      {`1`, `2`},
		`[1,{"open":"`: {`1`, `error: unexpected EOF`, `error: unexpected EOF`},
		``:             nil,
		`[`:            {"error: unexpected EOF"},
		`{"items":[1`:  {`1`, "error: unexpected EOF"},
		`["` + strings.Repeat("long ", 100) + `",1]`:                  {"error: too large", "1"},
		`[[` + strings.Repeat(`{"deep":"and wide"},`, 30) + `0],"e"]`: {"error: too large", `"e"`},
	} {
		for _, size := range []int{16, 4096} {
			var got []string
			s := splitter{r: bufio.NewReaderSize(iotest.OneByteReader(strings.NewReader(text)), size), max: 200}
			descend := ""
			if strings.Contains(text, `"items":[1`) {
				descend = "items"
			}
			err := s.each(descend, func(_ int, b []byte, err error) error {
				if err != nil {
					b = []byte("error: " + err.Error())
				}
				got = append(got, string(b))
				return nil
			})
			if err != nil {
				got = append(got, "error: "+err.Error())
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got %q, want %q", show.Clip(text, 60), got, want)
			}
		}
	}
}

// TestSplitterIsLinear splits strings of escapes, with their end far away and near.
func TestSplitterIsLinear(t *testing.T) {
	for name, unit := range map[string]string{"escapes": `\n`, "quotes": `\"`, "slashes": `\\`} {
		text := `["` + strings.Repeat(unit, 1<<20) + `",7]`
		s := splitter{r: bufio.NewReaderSize(strings.NewReader(text), headSize), max: 1 << 30}
		var got []int
		err := s.each("", func(_ int, b []byte, err error) error {
			got = append(got, len(b))
			return err
		})
		if err != nil || !reflect.DeepEqual(got, []int{len(unit)<<20 + 2, 1}) {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
}

func TestLinerSkipsLongLines(t *testing.T) {
	text := "one\r\n" + strings.Repeat("x", 100_000) + "\nthree\n\nlast"
	l := liner{r: bufio.NewReaderSize(strings.NewReader(text), 16), max: 1000}
	var got []string
	for {
		b, err := l.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			b = []byte("long")
		}
		got = append(got, fmt.Sprint(l.line, string(b)))
	}
	if want := []string{"1one", "2long", "3three", "4", "5last"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTimes(t *testing.T) {
	const second = "2025-04-13T20:52:37"
	for text, want := range map[string]string{
		"1744577557": second + "Z", "1744577557.5": second + ".5Z", "1744577557123": second + ".123Z", "1744577557123456": second + ".123456Z",
		"1744577557123456789": second + ".123456Z", `"1744577557"`: second + "Z", `"2025-04-13T20:52:37Z"`: second + "Z",
		`"2025-04-13T22:52:37.25+02:00"`: second + ".25Z", `"2025-04-13 20:52:37"`: second + "Z", `"2025-04-13T20:52:37+0000"`: second + "Z",
		"1744577557.123456": second + ".123456Z", `"2025-04-13"`: "2025-04-13T00:00:00Z",
		"0": "-", "-1": "-", "null": "-", `"soon"`: "-", "1e300": "-", "99999999999999999999": "-", "86400": "-", `""`: "-", `"1970-01-01T00:00:00Z"`: "-", "[1]": "-",
	} {
		v, _, err := new(document).parse([]byte(text), false)
		if err != nil {
			t.Fatal(err)
		}
		if got := at(v.time()); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}
