package tokens

import (
	"fmt"
	"sync"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// byLibrary returns a function that counts a piece with the library's encoder, which it makes with the first piece: that takes some 300 ms and 50 MB. The
// library's time is quadratic in the length of a piece.
func byLibrary(e Encoding) func(piece string) int {
	encoder := sync.OnceValue(func() *tiktoken.Tiktoken {
		ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(vocabularyFile(e))
		if err != nil {
			panic(fmt.Sprintf("tokens: the vocabulary %s of the program: %v", e, err))
		}
		// A piece is what the encoding's own expression matches, so this one matches all of it.
		core, err := tiktoken.NewCoreBPE(ranks, nil, `(?s).+`)
		if err != nil {
			panic(fmt.Sprintf("tokens: the encoder of %s: %v", e, err))
		}
		return tiktoken.NewTiktoken(core, &tiktoken.Encoding{Name: string(e), MergeableRanks: ranks}, nil)
	})
	return func(piece string) int { return len(encoder().EncodeOrdinary(piece)) }
}
