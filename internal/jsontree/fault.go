package jsontree

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Fault describes an error of encoding/json about the form of a text, without the words of that package.
func Fault(err error) string {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &syntax) && strings.HasPrefix(syntax.Error(), "unexpected end"):
		return "the JSON ends in the middle"
	case errors.As(err, &syntax):
		return fmt.Sprintf("this is no JSON from byte %d on", syntax.Offset)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}
