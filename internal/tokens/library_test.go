package tokens

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// noNetwork refuses every request, and remembers that it was asked.
type noNetwork struct{ asked atomic.Pointer[string] }

func (n *noNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	url := r.URL.String()
	n.asked.Store(&url)
	return nil, errors.New("counting must not use the network")
}

// TestMain fails if any test of this package makes something ask http.DefaultTransport, as tiktoken-go's own loader does.
func TestMain(m *testing.M) {
	var network noNetwork
	http.DefaultTransport = &network
	_ = os.Setenv("TIKTOKEN_CACHE_DIR", os.DevNull) // what the library fetched once would hide that it fetches
	code := m.Run()
	if url := network.asked.Load(); url != nil {
		fmt.Println("something asked http.DefaultTransport for", *url)
		code = 1
	}
	os.Exit(code)
}

// TestVocabularies compares what is read with what the loader reads of the same files: the same tokens, and the ranks of their lines.
func TestVocabularies(t *testing.T) {
	for _, e := range []Encoding{O200k, CL100k, P50k, R50k} {
		want, err := loader.NewOfflineLoader().LoadTiktokenBpe(vocabularyFile(e))
		if err != nil {
			t.Fatal(err)
		}
		v := e.coding().vocabulary()
		highest := 0
		for token, rank := range want {
			if got := v.rank(token); got != uint32(rank) {
				t.Fatalf("%s: %q has the rank %d, want %d", e, token, got, rank)
			}
			if _, ok := want[token+"~~"]; !ok && v.rank(token+"~~") != noToken {
				t.Fatalf("%s: %q is a token", e, token+"~~")
			}
			highest = max(highest, rank)
		}
		if gap := highest + 1 - len(want); (gap > 0) != (e == P50k) {
			t.Errorf("%s: %d tokens up to the rank %d", e, len(want), highest)
		}
	}
}

// TestBrokenVocabularies: a file that is cut or damaged is an error, not a shorter vocabulary.
func TestBrokenVocabularies(t *testing.T) {
	for name, text := range map[string]string{
		"no base64": "YQ== 0\n*g== 1\n", "no rank": "YQ== 0\nYg==\n", "half a line": "YQ== 0\nYg== 1\nYw", "rank": "YQ== -1\n", "large rank": "YQ== 1048576\n",
		"twice": "YQ== 0\nYQ== 1\n", "rank twice": "YQ== 0\nYg== 0\n", "no token": " 0\n", "long token": strings.Repeat("YWFh", 100) + " 0\n", "long line": strings.Repeat("a", 1<<17),
	} {
		if _, err := readLines(fstest.MapFS{"v": {Data: []byte(text)}}, "v"); err == nil {
			t.Errorf("%s is read", name)
		}
	}
	v, err := readLines(fstest.MapFS{"v": {Data: []byte("YQ== 7\nYg== 3")}}, "v")
	if err != nil || v.rank("a") != 7 || v.rank("b") != 3 || v.rank("c") != noToken {
		t.Errorf("a short file: %v", err)
	}
	if _, err := readLines(fstest.MapFS{}, "v"); err == nil {
		t.Error("a missing file is read")
	}
}

// TestLibraryCountsPieces: the library gets no piece of more than 1 KB, no more than 64 KB of a text, and none that is counted here; one encoder serves them all.
func TestLibraryCountsPieces(t *testing.T) {
	c := CL100k.coding()
	whole := c.whole
	defer func() { c.whole = whole }()
	var sizes []int
	c.whole = func(piece string) int {
		sizes = append(sizes, len(piece))
		return 1
	}
	for text, want := range map[string]int{
		strings.Repeat("a b, 漢字。", 1000):                        0,
		strings.Repeat("é", longest/2) + " ":                    0,
		strings.Repeat("é", longest/2+1) + " ":                  1,
		strings.Repeat("é", longestWhole/2) + " ":               1,
		strings.Repeat("é", longestWhole/2+1) + " ":             0,
		strings.Repeat("é", 1<<20):                              0,
		strings.Repeat("é"+strings.Repeat("a", 997)+"\n", 1000): mostWhole / 999,
	} {
		sizes = nil
		CL100k.Count(text)
		if len(sizes) != want {
			t.Errorf("%.20q…, %d bytes: the library got %d pieces, want %d: %v", text, len(text), len(sizes), want, sizes)
		}
		for _, n := range sizes {
			if n <= longest || n > longestWhole {
				t.Errorf("the library got a piece of %d bytes", n)
			}
		}
	}
}

// TestEncoderIsMadeOnce: at the same time from many sides too.
func TestEncoderIsMadeOnce(t *testing.T) {
	long := strings.Repeat("é", longestWhole/2)
	R50k.Count(long)
	var all sync.WaitGroup
	allocated := testing.AllocsPerRun(4, func() {
		for range 8 {
			all.Go(func() { R50k.Count(long) })
		}
		all.Wait()
	})
	if allocated > 1000 { // an encoder has 200,000
		t.Errorf("counting allocated %.0f times", allocated)
	}
}

// refusing is another program's loader.
type refusing struct{ asked *int }

func (r refusing) LoadTiktokenBpe(string) (map[string]int, error) {
	*r.asked++
	return nil, errors.New("another program's loader")
}

// TestLibraryStaysAsItIs: counting, with long pieces too, neither sets the library's loader nor fills its cache of encodings. A process of its own shows it, since
// other tests set the loader.
func TestLibraryStaysAsItIs(t *testing.T) {
	const child = "CHATCTX_TEST_LIBRARY"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestLibraryStaysAsItIs$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "asked 5 times") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	asked := 0
	tiktoken.SetBpeLoader(refusing{&asked})
	for _, e := range encodings {
		ForModel("gpt-4o").Encoding.Count("a")
		e.Count(strings.Repeat("é", longestWhole/2))
	}
	if asked > 0 {
		t.Error("counting asks the library's loader")
	}
	for _, e := range encodings {
		if _, err := tiktoken.GetEncoding(string(e)); err == nil {
			t.Errorf("counting made the library's encoding %s", e)
		}
	}
	t.Logf("asked %d times", asked)
}
