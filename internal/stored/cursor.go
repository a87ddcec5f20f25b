package stored

import (
	"fmt"
	"strconv"
	"strings"
)

// Cursor is a place in a message, as a JSON Pointer (RFC 6901), for code that walks through the message.
type Cursor struct{ Path []byte }

// Enter goes into a field; Leave goes back with the value that Enter returned.
func (c *Cursor) Enter(field string) int {
	back := len(c.Path)
	c.Path = append(c.Path, '/')
	c.Path = append(c.Path, field...)
	return back
}

// EnterName goes into a value whose name is arbitrary.
func (c *Cursor) EnterName(name string) int {
	return c.Enter(pointerEscapes.Replace(name))
}

// pointerEscapes escapes the special characters of a JSON Pointer.
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func (c *Cursor) EnterIndex(i int) int {
	back := len(c.Path)
	c.Path = append(c.Path, '/')
	c.Path = strconv.AppendInt(c.Path, int64(i), 10)
	return back
}

func (c *Cursor) Leave(back int) { c.Path = c.Path[:back] }

// Invalid returns an ErrInvalid that names the place.
func (c *Cursor) Invalid(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if len(c.Path) == 0 {
		return fmt.Errorf("%w: %s", ErrInvalid, text)
	}
	return fmt.Errorf("%w: %s: %s", ErrInvalid, c.Path, text)
}
