package poolstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// ArtifactBucket has large contents. The key of an artifact's header is its SHA-256; the key of a chunk is that with the chunk's number (4 bytes, most
// significant first, from 0).
const ArtifactBucket = "artifact"

// chunkSize is the size of all chunks but the last.
const chunkSize = 256 << 10

// chunksAtOnce is how many chunks are read together.
const chunksAtOnce = 16

// A size in a header is trusted up to maxGuess before the bytes are seen, and never above maxArtifact.
const (
	maxGuess    = 64 << 20
	maxArtifact = 1 << 40
)

// header is the record of an artifact.
type header struct {
	MediaType string `cbor:"1,keyasint,omitempty"`
	Size      int64  `cbor:"2,keyasint"`
	Chunks    uint32 `cbor:"3,keyasint"`
}

func chunkKey(h pool.Hash, n uint32) []byte {
	return binary.BigEndian.AppendUint32(h[:], n)
}

// PutArtifact stores data and returns its name. Storing the same bytes again changes nothing, not even the media type. An empty mediaType means that of
// SniffMediaType.
func PutArtifact(tx kv.RwTx, data []byte, mediaType string) (pool.Hash, error) {
	h := pool.HashOf(data)
	if has, err := HasArtifact(tx, h); has || err != nil {
		return h, err
	}
	if mediaType == "" {
		mediaType = pool.SniffMediaType(data)
	}
	head := header{MediaType: mediaType, Size: int64(len(data))}
	for rest := data; len(rest) > 0; head.Chunks++ {
		n := min(len(rest), chunkSize)
		if err := tx.Put(ArtifactBucket, chunkKey(h, head.Chunks), rest[:n]); err != nil {
			return pool.Hash{}, fmt.Errorf("storing artifact %s: %w", h, err)
		}
		rest = rest[n:]
	}
	b, err := stored.Seal(stored.Marshal(head))
	if err != nil {
		return pool.Hash{}, err
	}
	return h, tx.Put(ArtifactBucket, h[:], b)
}

// HasArtifact reports whether an artifact exists. It does not read the contents.
func HasArtifact(tx kv.Tx, h pool.Hash) (bool, error) {
	b, err := tx.Get(ArtifactBucket, h[:])
	return b != nil, err
}

// StatArtifact reads an artifact's size and media type but not its contents. It returns kv.ErrDamaged if the artifact is missing or its header cannot be
// read.
func StatArtifact(tx kv.Tx, h pool.Hash) (pool.ArtifactInfo, error) {
	b, err := tx.Get(ArtifactBucket, h[:])
	if err != nil {
		return pool.ArtifactInfo{}, err
	}
	if b == nil {
		return pool.ArtifactInfo{}, damagedArtifact(h, "it is not there")
	}
	head, err := parseHeader(b)
	if err != nil {
		return pool.ArtifactInfo{}, damagedArtifact(h, err.Error())
	}
	return pool.ArtifactInfo{SHA256: h, MediaType: head.MediaType, Size: head.Size}, nil
}

// IsArtifactHeader reports whether a value is the header of an artifact.
func IsArtifactHeader(value []byte) bool {
	_, err := parseHeader(value)
	return err == nil
}

// Artifact reads an artifact and its media type. It returns kv.ErrDamaged if the contents are missing or do not match the name: nothing refers to an
// artifact that was never stored.
func Artifact(tx kv.Tx, h pool.Hash) ([]byte, string, error) {
	b, err := tx.Get(ArtifactBucket, h[:])
	if err != nil {
		return nil, "", err
	}
	if b == nil {
		return nil, "", damagedArtifact(h, "it is not there")
	}
	head, err := parseHeader(b)
	if err != nil {
		return nil, "", damagedArtifact(h, err.Error())
	}
	var data bytes.Buffer
	data.Grow(int(min(head.Size, maxGuess)))
	for n := uint32(0); n < head.Chunks; n += chunksAtOnce {
		if err := readChunks(tx, h, n, min(n+chunksAtOnce, head.Chunks), &data); err != nil {
			return nil, "", err
		}
	}
	if int64(data.Len()) != head.Size || pool.HashOf(data.Bytes()) != h {
		return nil, "", damagedArtifact(h, "its bytes are not the ones that were stored")
	}
	return data.Bytes(), head.MediaType, nil
}

func readChunks(tx kv.Tx, h pool.Hash, from, to uint32, data *bytes.Buffer) error {
	var keys [][]byte
	for i := from; i < to; i++ {
		keys = append(keys, chunkKey(h, i))
	}
	return tx.GetMany(ArtifactBucket, keys, func(i int, chunk []byte) error {
		if len(chunk) == 0 {
			return damagedArtifact(h, fmt.Sprintf("chunk %d is not there", from+uint32(i)))
		}
		data.Write(chunk)
		return nil
	})
}

// ArtifactPart reads a part of an artifact, some 4 MB. Parts count from 0; after the last one it returns nil. Whether the bytes match the artifact's name
// shows only once all parts are read.
func ArtifactPart(tx kv.Tx, info pool.ArtifactInfo, part int) ([]byte, error) {
	chunks := (info.Size + chunkSize - 1) / chunkSize
	from := int64(part) * chunksAtOnce
	if from >= chunks {
		return nil, nil
	}
	var data bytes.Buffer
	data.Grow(int(min(chunksAtOnce*chunkSize, info.Size-from*chunkSize)))
	err := readChunks(tx, info.SHA256, uint32(from), uint32(min(from+chunksAtOnce, chunks)), &data)
	return data.Bytes(), err
}

func parseHeader(b []byte) (header, error) {
	var head header
	body, err := stored.Unseal(b)
	if err != nil {
		return head, err
	}
	if err := stored.UnmarshalSome(body, &head); err != nil {
		return head, err
	}
	if head.Size < 0 || head.Size > maxArtifact || int64(head.Chunks) != (head.Size+chunkSize-1)/chunkSize {
		return head, errors.New("its header has a wrong size")
	}
	return head, nil
}

func damagedArtifact(h pool.Hash, what string) error {
	return fmt.Errorf("%w: artifact %s: %s", kv.ErrDamaged, h, what)
}

// DeleteArtifact removes an artifact with all its chunks. A missing artifact is no error.
func DeleteArtifact(tx kv.RwTx, h pool.Hash) error {
	var keys [][]byte
	err := tx.Scan(ArtifactBucket, kv.Prefix(h[:]), func(key, _ []byte) error {
		keys = append(keys, bytes.Clone(key))
		return nil
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := tx.Delete(ArtifactBucket, key); err != nil {
			return err
		}
	}
	return nil
}

// ScanArtifacts calls fn for each artifact whose name comes after the given one (the zero Hash: for all), in the order of names. It reads no contents. For
// a header that cannot be read, and for chunks without one, fn gets only the name and an err that wraps kv.ErrDamaged; the scan goes on. An error of fn
// ends the scan; kv.ErrStop ends it without an error.
func ScanArtifacts(tx kv.Tx, after pool.Hash, fn func(a pool.ArtifactInfo, err error) error) error {
	from := append(after[:len(after):len(after)], 0xff, 0xff, 0xff, 0xff, 0xff)
	if after == (pool.Hash{}) {
		from = nil
	}
	var last pool.Hash
	return tx.Scan(ArtifactBucket, kv.Range{From: from}, func(key, value []byte) error {
		var h pool.Hash
		copy(h[:], key)
		switch {
		case len(key) == len(h):
			last = h
			head, err := parseHeader(value)
			if err != nil {
				err = damagedArtifact(h, err.Error())
			}
			return fn(pool.ArtifactInfo{SHA256: h, MediaType: head.MediaType, Size: head.Size}, err)
		case h != last || len(key) != len(h)+4:
			last = h
			return fn(pool.ArtifactInfo{SHA256: h}, damagedArtifact(h, "a chunk has no header"))
		}
		return nil
	})
}

// Artifacts returns the names of all artifacts that m refers to, in the order in which they occur.
func Artifacts(m *pool.Message) []pool.Hash {
	var list []pool.Hash
	add := func(h pool.Hash) {
		if h != (pool.Hash{}) {
			list = append(list, h)
		}
	}
	for i := range m.Content {
		add(m.Content[i].SHA256)
	}
	if m.Result != nil {
		add(m.Result.SHA256)
		for i := range m.Result.Parts {
			add(m.Result.Parts[i].SHA256)
		}
	}
	for _, place := range slices.Sorted(maps.Keys(m.Aside)) {
		add(m.Aside[place].SHA256)
	}
	return list
}
