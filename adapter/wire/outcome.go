package wire

import "errors"

// ErrRefused is for programs that report a refusal as an error, although there is a reply.
var ErrRefused = errors.New("there is no answer to this")
