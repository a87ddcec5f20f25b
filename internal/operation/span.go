package operation

import (
	"errors"
	"strings"
	"time"

	"github.com/chatctx/chatctx/internal/base"
)

// Span is a length of time: 90s, 5m.
type Span time.Duration

// UnmarshalText reads a time that was typed.
func (s *Span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if *s = Span(d); err != nil {
		return errors.New("a time such as 90s, 5m or 2h")
	}
	return nil
}

// UnmarshalJSON reads a text.
func (s *Span) UnmarshalJSON(raw []byte) error {
	text := strings.Trim(string(raw), `"`)
	if text == "null" {
		return nil
	}
	if err := s.UnmarshalText([]byte(text)); err != nil {
		return base.Invalid("%q is not %s", text, err)
	}
	return nil
}

// MarshalText writes it as it is read.
func (s Span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }
