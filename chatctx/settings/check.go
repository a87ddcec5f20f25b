package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Error says which setting is unknown, or has a value that it cannot have.
type Error struct {
	Name  string
	Value string // as it was given; "" where the name is what is wrong
	Wants string // what it takes
	Near  string // the name that was perhaps meant
	From  string // the environment variable that the value is from
}

func (e *Error) Error() string {
	name := e.Name
	if e.From != "" {
		name = e.From
	}
	switch {
	case e.Wants != "":
		return fmt.Sprintf("setting %s takes %s, not %s", name, e.Wants, e.Value)
	case e.Near != "":
		return fmt.Sprintf("there is no setting %q; did you mean %s?", name, e.Near)
	}
	return fmt.Sprintf("there is no setting %q", name)
}

// Check fails with an *Error where a setting is not in the table or cannot have the value. null, which takes it away, is for every name.
func Check(name string, value json.RawMessage) error {
	if string(value) == "null" {
		return nil
	}
	row, ok := Lookup(name)
	if !ok {
		return &Error{Name: name, Near: nearest(name)}
	}
	if !row.takes(value) {
		return &Error{Name: name, Value: string(value), Wants: row.wants()}
	}
	return nil
}

// CheckAll is Check for several, in the order of their names. What is held back passes: it is not in force, whatever it says.
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

// wants is what a setting takes, for an error.
func (s *Setting) wants() string {
	switch s.Type {
	case Word:
		return "one of " + strings.Join(strings.Fields(s.Words), ", ")
	case Share:
		return "a percentage like 80 %, or a share like 0.8"
	case Time:
		return "a time like 90s or 5m"
	case Truth, JSON:
		return string(s.Type)
	case Address:
		return "an address like https://host/v1"
	}
	return "a " + string(s.Type)
}

func (s *Setting) takes(value json.RawMessage) bool {
	var text string
	isText := json.Unmarshal(value, &text) == nil
	switch s.Type {
	case Text:
		return isText
	case Address:
		u, err := url.Parse(text)
		return isText && err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	case Word:
		return isText && slices.Contains(strings.Fields(s.Words), text)
	case Time:
		d, err := time.ParseDuration(text)
		return isText && err == nil && d > 0
	case Truth:
		return string(value) == "true" || string(value) == "false"
	case Number:
		n, err := strconv.ParseFloat(string(value), 64)
		return err == nil && n >= 0 && !math.IsInf(n, 0)
	case Count, Positive:
		n, err := strconv.ParseInt(string(value), 10, 64)
		return s.Type == Count && text == "off" || err == nil && n >= 0 && (n > 0 || s.Type == Count)
	case Share:
		_, ok := ParseShare(value)
		return ok
	}
	return json.Valid(value)
}

// ParseShare reads a part of a whole: "80 %", "80%", 80 or 0.8.
func ParseShare(value json.RawMessage) (share float64, ok bool) {
	number, percent := strings.CutSuffix(strings.Trim(string(value), `"`), "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 100 {
		return 0, false
	}
	if percent || f > 1 {
		f /= 100
	}
	return f, true
}

// Parse makes a value of what was typed. Text is taken as it is, unless it is a quoted JSON string; anything else is JSON where it is some, else text.
func Parse(name, typed string) json.RawMessage {
	raw := []byte(typed)
	row, _ := Lookup(name)
	plain := row.Type == Text || row.Type == Word || row.Type == Address || row.Type == Time
	if json.Valid(raw) && (!plain || strings.HasPrefix(strings.TrimSpace(typed), `"`)) {
		var b bytes.Buffer
		if json.Compact(&b, raw) == nil {
			return b.Bytes()
		}
	}
	text, _ := json.Marshal(typed) // texts always encode
	return text
}

// FromEnv are the settings that the environment gives, which are under those of every place. getenv may be nil. The error names the first variable with a value that
// its setting cannot have.
func FromEnv(getenv func(string) string) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	if getenv == nil {
		return out, nil
	}
	var first error
	for i := range Table {
		name := Table[i].Env()
		if name == "" || getenv(name) == "" {
			continue
		}
		value := Parse(Table[i].Name, getenv(name))
		if err := Check(Table[i].Name, value); err != nil {
			if e, ok := err.(*Error); ok && first == nil {
				e.From, first = name, e
			}
			continue
		}
		out[Table[i].Name] = value
	}
	return out, first
}

// Unknown are the names in a place's settings that are not in the table: they are kept, and not in force.
func Unknown(of map[string]json.RawMessage) []string {
	var out []string
	for name := range of {
		if _, ok := Lookup(name); !ok && !strings.HasPrefix(name, HeldPrefix) {
			out = append(out, name)
		}
	}
	return sorted(out)
}

// nearest is the name in the table that is the least changes away, "" where none is near.
func nearest(name string) string {
	best, least := "", len(name)/2+1
	for i := range Table {
		if n := distance(name, Table[i].Name); n < least {
			best, least = Table[i].Name, n
		}
	}
	return best
}

// distance is how many letters have to be put in, taken out, replaced or swapped with their neighbour to make one of the other.
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
