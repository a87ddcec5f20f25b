package cli

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// recordedNames gives stable words to what differs each time: ids, times, folders, addresses, secrets, processes.
type recordedNames struct {
	ids    map[string]string // the words for the short ids, by id
	full   map[string]string // whole ids, by the short one
	counts *idCounter
	fixed  *strings.Replacer
}

func newRecordedNames(t *testing.T, work, server string) *recordedNames {
	n := &recordedNames{ids: map[string]string{}, full: map[string]string{}, counts: &idCounter{}}
	host, _ := os.Hostname()
	self, _ := os.Executable()
	pairs := []string{
		work, "WORK", server, "http://SERVER", strings.TrimPrefix(server, "http://"), "SERVER",
		self, "PROGRAM", filepath.Base(self), "chatctx",
		runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH, "GO OS/ARCH", `"` + runtime.Version() + `"`, `"GO"`,
	}
	if data, err := filepath.Abs("testdata"); err == nil && filepath.IsAbs(data) {
		pairs = append(pairs, data, "DATA")
	}
	if host != "" {
		pairs = append(pairs, `"host":`+strconv.Quote(host), `"host":"HOST"`)
	}
	if u, err := user.Current(); err == nil {
		for _, form := range []string{
			`"name":"%s"`, `"by":"%s"`, `"by_name":"%s"`, `"by_name": "%s"`, `by cancel %s`, `by person %s`, `person %s`, `by %s`, "  %s\n",
		} {
			pairs = append(pairs, fmt.Sprintf(form, u.Username), fmt.Sprintf(form, "USER"))
		}
	}
	n.fixed = strings.NewReplacer(pairs...)
	countIDs(n.counts)
	return n
}

func (n *recordedNames) clone() *recordedNames {
	return &recordedNames{ids: maps.Clone(n.ids), full: maps.Clone(n.full), counts: &idCounter{made: n.counts.made}}
}

// follow continues with the words of a seed.
func (n *recordedNames) follow(seed *recordedNames) {
	n.ids, n.full, n.counts.made = maps.Clone(seed.ids), maps.Clone(seed.full), seed.counts.made
}

// idCounter is what new ids are made of in place of chance. Their last four bytes, the short form, begin with idMark.
type idCounter struct {
	mu   sync.Mutex
	made uint64
}

const idMark = 0xd1

func (c *idCounter) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := 0; at < len(b); at += 16 {
		c.made++
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, c.made))
		sum[12] = idMark
		copy(b[at:], sum[:16])
	}
	return len(b), nil
}

// countIDs makes new ids of a counter; nil: by chance again.
func countIDs(c *idCounter) {
	if c == nil {
		uuid.SetRand(nil)
		return
	}
	uuid.SetRand(c)
}

var (
	idWords    = lazily(`\b(?:[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{4}|[0-9a-f]{24})?d1[0-9a-f]{6}\b`)
	placeWords = lazily(`\{(id|ID)(\d+)\}`)
	timeWords  = lazily(`\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d| UTC)?)?`)
	microWords = lazily(`\b1[78]\d{14}\b|\b1[78]\d{8}\b`)
	otherWords = lazily(`("pid":|process |"process":|\bpid )\d+`)
	// The size of an export in this program's format varies: its times have no last zeros.
	sizeWords   = lazily(`("bytes":)\d+(,"file":"[^"]*","format":"chatctx")|(wrote .*, chatctx, )[0-9.]+ (?:B|KiB)|(jsonl","size":)\d+`)
	agoWords    = lazily(`"(since|until)":"[^"]*\.\d+Z"`) // as long before now as the line says
	handWords   = lazily(`"(next|seen|upload)":"[A-Za-z0-9_-]{20,}"`)
	secretWords = lazily(`\bchatctx_[A-Za-z0-9_-]{43}`)
	oldIDWords  = lazily(`\b01[0-9a-f]{6}(?:[0-9a-f]{4}7[0-9a-f]{19,32})?\b`) // as bytes, or shortened at its end
)

// recorded returns a text with words for what differs each time.
func (n *recordedNames) recorded(text string) string {
	text = n.fixed.Replace(text)
	text = handWords().ReplaceAllString(text, `"$1":"HANDLE"`)
	text = idWords().ReplaceAllStringFunc(text, n.id)
	text = secretWords().ReplaceAllString(text, "SECRET")
	text = oldIDWords().ReplaceAllStringFunc(text, func(s string) string {
		if at, err := strconv.ParseInt(s[:8], 16, 64); err == nil && isRecent(time.UnixMilli(at<<16)) {
			return "TIMEID"
		}
		return s
	})
	text = agoWords().ReplaceAllString(text, `"$1":"TIME"`)
	text = timeWords().ReplaceAllStringFunc(text, recentTime)
	text = microWords().ReplaceAllStringFunc(text, func(s string) string {
		at, _ := strconv.ParseInt((s + "000000")[:16], 10, 64)
		if isRecent(time.UnixMicro(at)) {
			return "TIME"
		}
		return s
	})
	text = sizeWords().ReplaceAllString(text, "${1}${3}${4}SIZE${2}")
	return otherWords().ReplaceAllString(text, "${1}PROCESS")
}

// id returns the word for an id: id1 for a short one, ID1 for the whole.
func (n *recordedNames) id(s string) string {
	short := s[len(s)-8:]
	if n.ids[short] == "" {
		n.ids[short] = strconv.Itoa(len(n.ids) + 1)
	}
	if len(s) == 8 {
		return "id" + n.ids[short]
	}
	n.full[short] = s
	return "ID" + n.ids[short]
}

// typed puts ids into a text that has their words in braces.
func (n *recordedNames) typed(text string) string {
	return placeWords().ReplaceAllStringFunc(text, func(word string) string {
		number := strings.Trim(word[3:], "}")
		for short, has := range n.ids {
			if has != number {
				continue
			}
			if full := n.full[short]; word[1] == 'I' && full != "" {
				return full
			}
			return short
		}
		return word
	})
}

// isRecent reports whether a time is that of the test rather than one that a file has.
func isRecent(at time.Time) bool {
	away := time.Since(at)
	return away < linesMostlyTake && away > -40*24*time.Hour
}

// linesMostlyTake is longer than the test takes.
const linesMostlyTake = 20 * time.Minute

func recentTime(s string) string {
	day, err := time.Parse(time.DateOnly, s[:10])
	if err != nil {
		return s
	}
	at := day.Add(24*time.Hour - 1) // a day alone is recent until it is over
	if len(s) > 15 {
		if of, err := time.Parse("15:04", s[11:16]); err == nil {
			at = day.Add(time.Duration(of.Hour())*time.Hour + time.Duration(of.Minute())*time.Minute + 59*time.Second)
		}
	}
	if !isRecent(at) {
		return s
	}
	return "TIME"
}

// lazily returns a function that compiles an expression once, when it is first asked: the program that TestStartsLean
// measures holds the tests too.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
