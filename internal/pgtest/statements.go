//go:build unix

package pgtest

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// statements records the statements that a connection has prepared, and the kind of its transaction.
type statements struct {
	prepared map[string]string
	writing  bool // in a transaction that may write
}

// look calls tell for each bucket that a request scans in a transaction that may write.
func (s *statements) look(request []byte, tell func(bucket string)) {
	if s.prepared == nil {
		s.prepared = map[string]string{}
	}
	for len(request) >= 5 {
		end := min(1+int(binary.BigEndian.Uint32(request[1:])), len(request))
		texts := bytes.SplitN(request[5:end], []byte{0}, 3)
		switch request[0] {
		case 'P':
			s.prepared[string(texts[0])] = string(texts[1])
		case 'B':
			sql := s.prepared[string(texts[1])]
			if s.runs(sql); s.writing && strings.Contains(sql, " order by bucket") {
				tell(firstParameter(texts[2]))
			}
		case 'Q':
			s.runs(string(texts[0]))
		}
		request = request[end:]
	}
}

// runs updates the kind of transaction after a statement.
func (s *statements) runs(sql string) {
	first, _, _ := strings.Cut(sql, " ")
	switch first {
	case "begin":
		s.writing = strings.HasSuffix(sql, "read write")
	case "commit", "rollback", "abort":
		s.writing = false
	}
}

// firstParameter returns the first value of a Bind message; b begins after the two names.
func firstParameter(b []byte) string {
	formats := int(binary.BigEndian.Uint16(b))
	b = b[2+2*formats+2:]
	n := int(binary.BigEndian.Uint32(b))
	return string(b[4 : 4+n])
}
