package exchange

import (
	"time"
)

// Place is a place where a tool of this machine keeps conversations.
type Place struct {
	Tool    string    `json:"tool"` // the name of its format
	Path    string    `json:"path"` // a file or folder
	Files   int       `json:"files"`
	Bytes   int64     `json:"bytes"`
	Changed time.Time `json:"changed_at"` // when the newest of its files was written
}
