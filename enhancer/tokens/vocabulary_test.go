package tokens

import (
	"bytes"
	"encoding/base64"
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

var update = flag.Bool("update", false, "write the vocabularies anew")

// TestVocabularyFiles compares the files of the vocabularies with those that OpenAI publishes, which the loader's module has in base64 with their ranks.
func TestVocabularyFiles(t *testing.T) {
	for _, e := range []Encoding{O200k, CL100k} {
		data, err := assets.Assets.ReadFile(string(e) + ".tiktoken")
		if err != nil {
			t.Fatal(err)
		}
		var want []byte
		for rank, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
			coded, number, _ := bytes.Cut(line, []byte{' '})
			token, err := base64.StdEncoding.DecodeString(string(coded))
			if err != nil || len(token) == 0 || len(token) > 255 || string(number) != strconv.Itoa(rank) {
				t.Fatalf("%s: line %d is %q: %v", e, rank, line, err)
			}
			want = append(append(want, byte(len(token))), token...)
		}
		name := string(e) + ".tokens"
		if *update {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(name); err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is not what its ranks make: go test ./enhancer/tokens -run VocabularyFiles -update (%v)", name, err)
		}
	}
}
