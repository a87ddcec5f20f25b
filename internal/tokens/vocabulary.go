package tokens

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"math/bits"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// vocabulary has the rank of each token, in a hash table: it is filled in a third of the time of a map, and takes half the memory.
type vocabulary struct {
	seed maphash.Seed
	text []byte   // all tokens, one after the other
	at   []uint32 // of each rank, where its token begins in text (24 bits) and its length (8 bits)
	// slots are more than there are tokens, a power of two. The lower rankBits are a rank and 1, or 0 if the slot is empty; the others are the
	// upper bits of its token's hash, so that a text that is no token is seldom compared with one.
	slots []uint32
}

const (
	noToken      = ^uint32(0)
	rankBits     = 20
	rankMask     = 1<<rankBits - 1
	longestToken = 255
)

// rank returns the rank of a token, noToken if it is none.
func (v *vocabulary) rank(b string) uint32 {
	h := maphash.String(v.seed, b)
	rank, _ := find(v, b, h)
	return rank
}

// find returns the rank of a token with its hash, or noToken and its slot.
func find[T string | []byte](v *vocabulary, b T, h uint64) (rank uint32, free *uint32) {
	for i := h; ; i++ {
		slot := &v.slots[i&uint64(len(v.slots)-1)]
		if *slot == 0 {
			return noToken, slot
		}
		if (*slot^uint32(h>>32))>>rankBits != 0 {
			continue // another hash
		}
		if at := v.at[*slot&rankMask-1]; string(v.text[at>>8:][:at&0xff]) == string(b) {
			return *slot&rankMask - 1, slot
		}
	}
}

// add adds a token of at most longestToken bytes. It reports whether the token and the rank are new.
func (v *vocabulary) add(token []byte, rank uint32) bool {
	h := maphash.Bytes(v.seed, token)
	known, free := find(v, token, h)
	if n := int(rank) + 1 - len(v.at); n > 0 {
		v.at = append(v.at, make([]uint32, n)...)
	}
	if known != noToken || v.at[rank] != 0 {
		return false
	}
	*free = uint32(h>>32)>>rankBits<<rankBits | (rank + 1)
	v.at[rank] = uint32(len(v.text)<<8 | len(token))
	v.text = append(v.text, token...)
	return true
}

// vocabularyFile is the name of a vocabulary among the assets of tiktoken-go's loader, which are in the program. Each line has a token in base64 and its rank.
func vocabularyFile(e Encoding) string { return string(e) + ".tiktoken" }

// readVocabulary reads a vocabulary. It panics if the file is missing or broken, since it is part of the program.
func readVocabulary(e Encoding) *vocabulary {
	v, err := readLines(assets.Assets, vocabularyFile(e))
	if err != nil {
		panic(fmt.Sprintf("tokens: the vocabulary %s of the program: %v", e, err))
	}
	return v
}

// The lengths of a vocabulary's lines, in bytes: a token of one byte with the rank 0, and about the average.
const shortLine, usualLine = 7, 17

// readLines reads a vocabulary line by line, since a copy of all lines would take as much memory as the program needs for the rest.
func readLines(files fs.FS, name string) (*vocabulary, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := int(info.Size())
	v := &vocabulary{seed: maphash.MakeSeed(), text: make([]byte, 0, size/usualLine*7), at: make([]uint32, 0, size/usualLine), slots: make([]uint32, 1<<bits.Len(uint(size/shortLine+1)))}
	token := make([]byte, longestToken)
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			return v, nil
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
		if !v.addLine(bytes.TrimSuffix(line, []byte{'\n'}), token) {
			return nil, fmt.Errorf("the line %q of %s has no token with a rank, or one that an earlier line has", line, name)
		}
	}
}

// addLine adds the token of a line, for which it needs room. It reports whether it could.
func (v *vocabulary) addLine(line, room []byte) bool {
	coded, number, _ := bytes.Cut(line, []byte{' '})
	if base64.StdEncoding.DecodedLen(len(coded)) > len(room) {
		return false
	}
	n, err := base64.StdEncoding.Decode(room, coded)
	if err != nil || n == 0 || len(number) == 0 {
		return false
	}
	rank := uint32(0)
	for _, digit := range number {
		if rank = 10*rank + uint32(digit-'0'); digit < '0' || digit > '9' || rank >= rankMask {
			return false
		}
	}
	return v.add(room[:n], rank)
}
