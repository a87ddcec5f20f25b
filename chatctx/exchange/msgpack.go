package exchange

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math"
	"strconv"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// MessagePack is converted to JSON, for data of Python programs. Only JSON is made from it: an extension becomes an object with its number and content. Values are
// taken one by one, since what the library makes of a whole map has lost the order of keys and those that stand twice.

var errMsgpack = errors.New("not MessagePack")

type packed struct {
	*msgpack.Decoder
	in  *bytes.Reader
	out []byte
}

// msgpackJSON returns one value as JSON.
func msgpackJSON(in []byte) ([]byte, error) {
	m := newPacked(in)
	if m.value(0) != nil {
		return nil, errMsgpack
	}
	return m.out, nil
}

func newPacked(in []byte) *packed {
	r := bytes.NewReader(in)
	return &packed{Decoder: msgpack.NewDecoder(r), in: r}
}

func (m *packed) value(depth int) error {
	c, err := m.PeekCode()
	if err != nil || depth > 100 {
		return errMsgpack
	}
	switch {
	case c == msgpcode.Nil:
		m.out = append(m.out, "null"...)
		return m.DecodeNil()
	case c == msgpcode.False || c == msgpcode.True:
		m.out = strconv.AppendBool(m.out, c == msgpcode.True)
		return m.Skip()
	case msgpcode.IsFixedNum(c) || c >= msgpcode.Int8 && c <= msgpcode.Int64:
		n, err := m.DecodeInt64()
		m.out = strconv.AppendInt(m.out, n, 10)
		return err
	case c >= msgpcode.Uint8 && c <= msgpcode.Uint64:
		n, err := m.DecodeUint64()
		m.out = strconv.AppendUint(m.out, n, 10)
		return err
	case c == msgpcode.Float || c == msgpcode.Double:
		return m.float()
	case msgpcode.IsString(c) || msgpcode.IsBin(c):
		return m.text(msgpcode.IsBin(c))
	case msgpcode.IsFixedArray(c) || c == msgpcode.Array16 || c == msgpcode.Array32:
		n, err := m.DecodeArrayLen()
		return errors.Join(err, m.list(n, false, depth))
	case msgpcode.IsFixedMap(c) || c == msgpcode.Map16 || c == msgpcode.Map32:
		n, err := m.DecodeMapLen()
		return errors.Join(err, m.list(n, true, depth))
	case msgpcode.IsExt(c):
		return m.extension(depth)
	}
	return errMsgpack
}

// take returns the next n bytes. A number that is larger than what is left takes no memory.
func (m *packed) take(n int) ([]byte, error) {
	if n < 0 || n > m.in.Len() {
		return nil, errMsgpack
	}
	b := make([]byte, n)
	return b, m.ReadFull(b)
}

// text converts a text, or bytes.
func (m *packed) text(binary bool) error {
	n, err := m.DecodeBytesLen()
	if err != nil {
		return err
	}
	b, err := m.take(n)
	s, _ := repairUTF8(b)
	if binary {
		s = base64.StdEncoding.EncodeToString(b)
	}
	m.out = append(m.out, jsonText(s)...)
	return err
}

func (m *packed) float() error {
	f, err := m.DecodeFloat64()
	if math.IsNaN(f) || math.IsInf(f, 0) {
		m.out = append(m.out, "null"...)
	} else {
		m.out = strconv.AppendFloat(m.out, f, 'g', -1, 64)
	}
	return err
}

// list converts n items, or n pairs of an object, whose keys become strings.
func (m *packed) list(n int, object bool, depth int) error {
	if n < 0 || n > m.in.Len() {
		return errMsgpack
	}
	open, end := byte('['), byte(']')
	if object {
		open, end = '{', '}'
	}
	m.out = append(m.out, open)
	for i := range n {
		if i > 0 {
			m.out = append(m.out, ',')
		}
		if object {
			from := len(m.out)
			if err := m.value(depth + 1); err != nil {
				return err
			}
			if m.out[from] != '"' {
				m.out = append(m.out[:from], jsonText(string(m.out[from:]))...)
			}
			m.out = append(m.out, ':')
		}
		if err := m.value(depth + 1); err != nil {
			return err
		}
	}
	m.out = append(m.out, end)
	return nil
}

// extension converts an extension, with its content if that is MessagePack.
func (m *packed) extension(depth int) error {
	kind, n, err := m.DecodeExtHeader()
	if err != nil {
		return err
	}
	b, err := m.take(n)
	if err != nil {
		return err
	}
	m.out = append(strconv.AppendInt(append(m.out, `{"ext":`...), int64(kind), 10), `,"value":`...)
	inner := newPacked(b)
	if err := inner.value(depth + 1); err == nil && inner.in.Len() == 0 {
		m.out = append(m.out, inner.out...)
	} else {
		m.out = append(m.out, jsonText(base64.StdEncoding.EncodeToString(b))...)
	}
	m.out = append(m.out, '}')
	return nil
}
