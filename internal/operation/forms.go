package operation

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// FormError means that a text has not the form of what it stands for.
type FormError struct {
	Text string
	Hint string // the forms that it may have
}

func (e *FormError) Error() string { return e.Text }

func (e *FormError) Unwrap() error { return chatctx.ErrInvalid }

// When parses a moment: a date, a time, or how long before now, in a year that JSON can say. "" is none.
func When(s string, now time.Time) (pool.Time, error) {
	t, err := moments(s, now)
	if year := t.Time().UTC().Year(); err == nil && t != 0 && (year < 0 || year > 9999) {
		return 0, &FormError{fmt.Sprintf("no time %q: the years go from 0 to 9999", s), howLongAgo}
	}
	return t, err
}

// howLongAgo says how moments are written.
const howLongAgo = "write 2025-01-31, 2025-01-31T10:00:00Z, or how long ago: 12h, 7d, 2w"

func moments(s string, now time.Time) (pool.Time, error) {
	if s == "" {
		return 0, nil
	}
	for _, layout := range []string{time.DateOnly, time.DateTime, "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return pool.TimeOf(t), nil
		}
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return pool.TimeOf(t), nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return pool.TimeOf(now.Add(-d)), nil
	}
	unit := map[string]int{"d": 1, "w": 7}
	if n := len(s) - 1; n > 0 && unit[s[n:]] > 0 {
		if days, err := strconv.ParseUint(s[:n], 10, 31); err == nil {
			return pool.TimeOf(now.AddDate(0, 0, -int(days)*unit[s[n:]])), nil
		}
	}
	return 0, &FormError{fmt.Sprintf("no time %q", s), howLongAgo}
}

// Age is how long ago something was, with the words for it that were typed.
type Age struct {
	time.Duration
	Typed string
}

// UnmarshalText reads 12h, 7d or 2w.
func (a *Age) UnmarshalText(b []byte) error {
	a.Typed = string(b)
	now := time.Now()
	t, err := When(a.Typed, now)
	if err != nil || t == 0 || !t.Time().Before(now) || now.Sub(t.Time()) == math.MaxInt64 {
		return &FormError{fmt.Sprintf("no age %q", a.Typed), "write 12h, 7d or 2w"}
	}
	a.Duration = now.Sub(t.Time())
	return nil
}

// Size is a number of bytes.
type Size int64

// UnmarshalText reads 1000, 500MB or 2GiB; "" is 0.
func (n *Size) UnmarshalText(b []byte) error {
	s := string(b)
	if s == "" {
		return nil
	}
	digits := strings.TrimRight(strings.TrimSpace(s), "KMGTiBkmgtb ")
	unit := strings.ToUpper(strings.TrimSpace(s[len(digits):]))
	factor, ok := map[string]float64{"": 1, "B": 1, "K": 1e3, "KB": 1e3, "M": 1e6, "MB": 1e6, "G": 1e9, "GB": 1e9, "T": 1e12, "TB": 1e12,
		"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}[unit]
	v, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(v > 0) || v*factor > math.MaxInt64/2 {
		return &FormError{fmt.Sprintf("no size %q", s), "write 500MB, 2GB or 1500MiB"}
	}
	*n = Size(v * factor)
	return nil
}
