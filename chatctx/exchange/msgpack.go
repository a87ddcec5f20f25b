package exchange

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
)

// MessagePack is converted to JSON, for data of Python programs. Only JSON is made from it: an extension becomes an object with its number and content.

var errMsgpack = errors.New("not MessagePack")

type msgpack struct {
	in  []byte
	out []byte
}

// msgpackJSON returns one value as JSON.
func msgpackJSON(in []byte) ([]byte, error) {
	m := &msgpack{in: in}
	err := m.value(0)
	return m.out, err
}

func (m *msgpack) take(n uint64) ([]byte, error) {
	if uint64(len(m.in)) < n {
		return nil, errMsgpack
	}
	b := m.in[:n]
	m.in = m.in[n:]
	return b, nil
}

func (m *msgpack) size(bytes uint64) (uint64, error) {
	b, err := m.take(bytes)
	var n uint64
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n, err
}

func (m *msgpack) value(depth int) error {
	b, err := m.take(1)
	if err != nil || depth > 100 {
		return errMsgpack
	}
	switch c := b[0]; {
	case c <= 0x7f:
		m.out = strconv.AppendUint(m.out, uint64(c), 10)
	case c >= 0xe0:
		m.out = strconv.AppendInt(m.out, int64(int8(c)), 10)
	case c <= 0x8f:
		return m.list(uint64(c&15), true, depth)
	case c <= 0x9f:
		return m.list(uint64(c&15), false, depth)
	case c <= 0xbf:
		return m.text(uint64(c & 31))
	case c == 0xc0:
		m.out = append(m.out, "null"...)
	case c == 0xc2:
		m.out = append(m.out, "false"...)
	case c == 0xc3:
		m.out = append(m.out, "true"...)
	default:
		return m.long(c, depth)
	}
	return nil
}

// long converts a value with its size in front.
func (m *msgpack) long(c byte, depth int) error {
	sized := func(width uint64, f func(n uint64) error) error {
		n, err := m.size(width)
		if err != nil {
			return err
		}
		return f(n)
	}
	switch {
	case c >= 0xc4 && c <= 0xc6:
		return sized(1<<(c-0xc4), m.bytes)
	case c >= 0xc7 && c <= 0xc9:
		return sized(1<<(c-0xc7), func(n uint64) error { return m.extension(n, depth) })
	case c == 0xca || c == 0xcb:
		return m.float(1 << (c - 0xca + 2))
	case c >= 0xcc && c <= 0xcf:
		return sized(1<<(c-0xcc), func(n uint64) error { m.out = strconv.AppendUint(m.out, n, 10); return nil })
	case c >= 0xd0 && c <= 0xd3:
		width := uint64(1) << (c - 0xd0)
		return sized(width, func(n uint64) error {
			m.out = strconv.AppendInt(m.out, int64(n<<(64-8*width))>>(64-8*width), 10)
			return nil
		})
	case c >= 0xd4 && c <= 0xd8:
		return m.extension(1<<(c-0xd4), depth)
	case c >= 0xd9 && c <= 0xdb:
		return sized(1<<(c-0xd9), m.text)
	case c == 0xdc || c == 0xdd:
		return sized(2<<(c-0xdc), func(n uint64) error { return m.list(n, false, depth) })
	case c == 0xde || c == 0xdf:
		return sized(2<<(c-0xde), func(n uint64) error { return m.list(n, true, depth) })
	}
	return errMsgpack
}

func (m *msgpack) text(n uint64) error {
	b, err := m.take(n)
	s, _ := repairUTF8(b)
	m.out = append(m.out, jsonText(s)...)
	return err
}

func (m *msgpack) bytes(n uint64) error {
	b, err := m.take(n)
	m.out = append(m.out, jsonText(base64.StdEncoding.EncodeToString(b))...)
	return err
}

func (m *msgpack) float(width uint64) error {
	b, err := m.take(width)
	if err != nil {
		return err
	}
	f := float64(0)
	if width == 4 {
		f = float64(math.Float32frombits(binary.BigEndian.Uint32(b)))
	} else {
		f = math.Float64frombits(binary.BigEndian.Uint64(b))
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		m.out = append(m.out, "null"...)
		return nil
	}
	m.out = strconv.AppendFloat(m.out, f, 'g', -1, 64)
	return nil
}

// list converts n items, or n pairs of an object, whose keys become strings.
func (m *msgpack) list(n uint64, object bool, depth int) error {
	if n > uint64(len(m.in)) {
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
func (m *msgpack) extension(n uint64, depth int) error {
	kind, err := m.take(1)
	if err != nil {
		return err
	}
	b, err := m.take(n)
	if err != nil {
		return err
	}
	m.out = append(strconv.AppendInt(append(m.out, `{"ext":`...), int64(int8(kind[0])), 10), `,"value":`...)
	inner := &msgpack{in: b}
	if err := inner.value(depth + 1); err == nil && len(inner.in) == 0 {
		m.out = append(m.out, inner.out...)
	} else {
		m.out = append(m.out, jsonText(base64.StdEncoding.EncodeToString(b))...)
	}
	m.out = append(m.out, '}')
	return nil
}
