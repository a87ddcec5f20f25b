package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chatctx/chatctx/internal/jsontree"
)

// ErrSetting means that a setting is unknown or its value invalid. The error is mostly an *Error.
var ErrSetting = errors.New("setting")

// Error says which setting is unknown, has an invalid value or has no effect. It is an ErrSetting.
type Error struct {
	Name  string
	Value string // as given; "" if the name is wrong
	Wants string // the values that it takes
	Near  string // the name that was perhaps meant
	From  string // the environment variable of the value
	Idle  string // why it has no effect at its place
}

func (e *Error) Error() string {
	name := "setting " + e.Name
	if e.From != "" {
		name = e.From
	}
	switch {
	case e.Idle != "":
		return name + " has no effect: " + e.Idle
	case e.Wants != "":
		return fmt.Sprintf("%s takes %s, not %s", name, e.Wants, e.Value)
	case e.Near != "":
		return fmt.Sprintf("there is no setting %q; did you mean %s?", e.Name, e.Near)
	}
	return fmt.Sprintf("there is no setting %q", e.Name)
}

// Unwrap returns ErrSetting.
func (e *Error) Unwrap() error { return ErrSetting }

// Check returns an *Error if a setting is not in the table or its value is invalid. null, which removes a setting, is valid for every name.
func Check(name string, value json.RawMessage) error {
	if string(value) == "null" {
		return nil
	}
	row, ok := Lookup(name)
	if !ok {
		return &Error{Name: name, Near: nearest(name)}
	}
	if field, ok := strings.CutPrefix(name, row.Name); ok && row.Group == Own && row.Name != "app." && fromBranch[field] {
		return &Error{Name: name, Value: string(value), Idle: "the request has this from the branch"}
	}
	if !row.takes(value) {
		e := &Error{Name: name, Value: string(value), Wants: row.wants()}
		if row.Type == Variable {
			e.Value = "that"
		}
		return e
	}
	return nil
}

// fromBranch are the fields of requests that come from the branch: a setting cannot replace them.
var fromBranch = map[string]bool{"messages": true, "contents": true, "input": true, "system": true, "systemInstruction": true,
	"instructions": true, "model": true, "stream": true, "stream_options": true}

// CheckAll checks several settings, in the order of their names. It skips held ones, which are not in force.
func CheckAll(set map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if strings.HasPrefix(name, HeldPrefix) {
			continue
		}
		if err := Check(name, set[name]); err != nil {
			return err
		}
	}
	return nil
}

// wants returns what values a setting takes, for an error about a value.
func (s *Setting) wants() string {
	text := s.Takes()
	switch s.Type {
	case Number, Count, Share, Text, Texts, Time, Variable:
		text = "a " + text
	case Address:
		text = "an " + text
	}
	return text
}

// isVariable reports whether a text can be the name of an environment variable: letters, digits and _ of ASCII, not beginning with a digit.
func isVariable(text string) bool {
	letters := "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	return text != "" && strings.IndexByte(letters, text[0]) >= 0 && strings.Trim(text, letters+"0123456789") == ""
}

func (s *Setting) takes(value json.RawMessage) bool {
	text, isText := jsontree.Text(value)
	switch s.Type {
	case Text:
		return isText
	case Address:
		u, err := url.Parse(text)
		return isText && err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	case Variable:
		return isText && isVariable(text)
	case Word:
		return slices.Contains(strings.Fields(s.Words), text)
	case Level:
		return slices.Contains(strings.Fields(s.Words), text) || s.counts(value)
	case Texts:
		return isText || areTexts(value)
	case Time:
		d, err := time.ParseDuration(text)
		return isText && err == nil && d > 0
	case Truth:
		return string(value) == "true" || string(value) == "false"
	case Number:
		n, err := strconv.ParseFloat(string(value), 64)
		return err == nil && s.holds(n)
	case Count:
		return s.Off && text == "off" || s.counts(value)
	case Share:
		n, ok := parseShare(value)
		return ok && s.holds(n)
	case Format:
		return isFormat(value)
	case Choice:
		return isChoice(value)
	case Pattern:
		return isTemplate(value)
	}
	return json.Valid(value)
}

// isFormat reports whether the value is the form of an answer: a word, or a schema as OpenAI's Chat Completions and Responses have it.
func isFormat(value json.RawMessage) bool {
	v, err := jsontree.Parse(value)
	if err != nil {
		return false
	}
	kind := v
	if v.Kind == jsontree.Object {
		kind = v.Get("type")
	}
	switch {
	case kind == nil || kind.Kind != jsontree.String:
		return false
	case kind.Text == "json_schema" && v.Kind == jsontree.Object:
		if nested := v.Get("json_schema"); nested != nil && nested.Kind == jsontree.Object {
			v = nested
		}
		schema := v.Get("schema")
		return schema != nil && schema.Kind == jsontree.Object
	}
	return kind.Text == "text" || kind.Text == "json" || kind.Text == "json_object"
}

// isChoice reports whether the value says which tools may be called: a word, a tool's name, or a provider's object.
func isChoice(value json.RawMessage) bool {
	v, err := jsontree.Parse(value)
	if err != nil {
		return false
	}
	if v.Kind == jsontree.String {
		return v.Text != ""
	}
	text := func(v *jsontree.Value, name string) string {
		if v = v.Get(name); v == nil || v.Kind != jsontree.String {
			return ""
		}
		return v.Text
	}
	function := v.Get("function")
	if text(v, "name") != "" || function != nil && text(function, "name") != "" {
		return true
	}
	return slices.Contains([]string{"auto", "none", "required", "any"}, text(v, "type"))
}

func areTexts(list json.RawMessage) bool {
	if !json.Valid(list) || bytes.TrimLeft(list, " \t\r\n")[0] != '[' {
		return false
	}
	return nil == jsontree.Each(list, func(_, one []byte) error {
		if _, is := jsontree.Text(one); !is {
			return errNoText
		}
		return nil
	})
}

var errNoText = errors.New("an element is no text")

// counts reports whether the value is a whole number in the range.
func (s *Setting) counts(value json.RawMessage) bool {
	n, err := strconv.ParseInt(string(value), 10, 64)
	return err == nil && s.holds(float64(n))
}

// holds reports whether a number is in the range.
func (s *Setting) holds(n float64) bool {
	return n >= s.Min && (s.Max == 0 || n <= s.Max) && !math.IsInf(n, 0)
}

// parseShare parses a share: 0.8, or "80 %", with or without the blank.
func parseShare(value json.RawMessage) (share float64, ok bool) {
	text, isText := jsontree.Text(value)
	if !isText {
		f, err := strconv.ParseFloat(string(value), 64)
		return f, err == nil
	}
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	return f / 100, err == nil && percent
}

// Ignored returns an *Error for each setting of several places, the widest first, that is not in force because it is unknown, its value is invalid or it has no
// effect (a key_env without an address). The nearest place comes first, and in a place the order of the names. Held settings are not among them.
func Ignored(places ...map[string]json.RawMessage) []error {
	var out []error
	seen := map[string]bool{}
	for i, place := range slices.Backward(places) {
		wrong := map[string]error{}
		for name, value := range place {
			if err := Check(name, value); err != nil && !strings.HasPrefix(name, HeldPrefix) {
				wrong[name] = err
			}
		}
		for name, why := range idleHere(places[:i], place) {
			wrong[name] = &Error{Name: name, Value: string(place[name]), Idle: why}
		}
		for _, name := range slices.Sorted(maps.Keys(wrong)) {
			if text := wrong[name].Error(); !seen[text] {
				seen[text], out = true, append(out, wrong[name])
			}
		}
	}
	return out
}

// nearest returns the most similar name of the table, "" if none is similar.
func nearest(name string) string {
	best, least := "", len(name)/2+1
	for i := range rows() {
		if n := distance(name, rows()[i].Name); n < least {
			best, least = rows()[i].Name, n
		}
	}
	return best
}

// distance returns how many letters must be inserted, removed, replaced or swapped with their neighbour to turn a into b.
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, above, now := rows[0], rows[1], rows[2]
		now[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			now[j] = min(above[j]+1, now[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		rows = [3][]int{above, now, before}
	}
	return rows[1][len(b)]
}
