package exchange

import (
	"math"
	"strconv"
	"time"

	"github.com/chatctx/chatctx/pool"
)

// time returns a time: from a number (also in a string) of seconds, milliseconds, microseconds or nanoseconds, distinguished by magnitude, or from an ISO 8601
// date. Anything else, and a time that is not between 1980 and 2200, is unknown (0): a clock that was never set, a number that is not a time.
func (v value) time() pool.Time {
	var t pool.Time
	switch v.kind() {
	case numberKind:
		t = numericTime(string(v.raw()))
	case stringKind:
		t = parseTime(v.str())
	}
	if t != 0 {
		v.taken()
	}
	return t
}

// timeLayouts are the formats of dates, without the T and with a point before the fraction. A date without a zone is UTC.
var timeLayouts = []string{
	"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z0700", "2006-01-02 15:04:05Z07", "2006-01-02 15:04:05",
	"2006-01-02 15:04:05 Z07:00", "2006-01-02 15:04:05 Z0700", "2006-01-02 15:04Z07:00", "2006-01-02 15:04", "2006-01-02",
	"January 2, 2006 3:04pm", "2006-1-2@15h04m05s", "2006-1-2 @15h 04m 05s 000ms", "2006-1-2@15h04m05s000ms",
}

// parseTime parses a time.
func parseTime(s string) pool.Time {
	if t := numericTime(s); t != 0 || s == "" {
		return t
	}
	if len(s) > 10 && (s[10] == 'T' || s[10] == 't') {
		s = s[:10] + " " + s[11:]
	}
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, s); err == nil && t.Year() >= 1980 && t.Year() < 2200 {
			return pool.TimeOf(t.Round(time.Microsecond))
		}
	}
	return 0
}

// The limits of the units, and the times that are accepted: from 1980 to 2200, in seconds.
const (
	maxSeconds  = 1e11
	maxMillis   = 1e14
	maxMicros   = 1e17
	firstSecond = 315532800
	lastSecond  = 7258118400
)

func numericTime(s string) pool.Time {
	if !validNumber([]byte(s)) {
		return 0
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= maxMillis { // exact, unlike a float
		if n >= maxMicros {
			n /= 1000
		}
		return believable(float64(n)/1e6, pool.Time(n))
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f <= 0 || f >= 1<<63 {
		return 0
	}
	switch {
	case f < maxSeconds:
		f *= 1e6
	case f < maxMillis:
		f *= 1e3
	case f >= maxMicros:
		f /= 1e3
	}
	return believable(f/1e6, pool.Time(math.Round(f)))
}

func believable(seconds float64, t pool.Time) pool.Time {
	if seconds < firstSecond || seconds > lastSecond {
		return 0
	}
	return t
}
