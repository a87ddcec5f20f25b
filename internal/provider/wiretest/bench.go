package wiretest

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
)

// Bench compares reading a reply stream of 1 MB into a message with only decoding its events. The goal is at most twice the time.
func (p Provider) Bench(b *testing.B, stream []byte) {
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(stream)))
		for b.Loop() {
			frames := p.Frames(bytes.NewReader(stream))
			for {
				e, err := frames.Next()
				if err == io.EOF {
					break
				}
				if bytes.Equal(e.Data, []byte("[DONE]")) {
					continue
				}
				var v any
				if err := json.Unmarshal(e.Data, &v); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("reply", func(b *testing.B) {
		b.SetBytes(int64(len(stream)))
		for b.Loop() {
			if m, err := p.Read(bytes.NewReader(stream)); err != nil || m.Text() == "" {
				b.Fatal(err)
			}
		}
	})
}

// Stream returns a stream of 1 MB: first, delta many times, last.
func Stream(first, delta, last string) []byte {
	b := []byte(first)
	for len(b) < 1<<20 {
		b = append(b, delta...)
	}
	return append(b, last...)
}
