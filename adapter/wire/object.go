package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/chatctx/chatctx/internal/jsontree"
)

// streaming returns a request whose body says whether to stream, followed by the members of the object more, which replace existing ones in place. The other bytes stay
// unchanged. If r.Whole is set, it leaves more out.
func streaming(r Request, more json.RawMessage) (Request, error) {
	o, err := jsontree.ParseObject(r.Body)
	if err != nil {
		return r, fmt.Errorf("the request body is not a JSON object: %w", err)
	}
	o.Set("stream", strconv.AppendBool(nil, !r.Whole))
	if len(more) > 0 && !r.Whole {
		members, err := jsontree.ParseObject(more)
		if err != nil {
			return r, fmt.Errorf("the members that ask for a stream are no JSON object: %w", err)
		}
		for _, m := range members {
			o.Set(m.Name, m.Value)
		}
	}
	r.Body = o.Bytes()
	return r, nil
}

// Decode parses JSON as json.Unmarshal does, but ignores a value of an unexpected type instead of failing: a number that a server sends as text is no reason to
// lose a reply.
func Decode(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return nil
	}
	return err
}
