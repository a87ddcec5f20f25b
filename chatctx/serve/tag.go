package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/internal/base"
)

// The tag of an answer is "REVISION-HASH". If-Match uses the revision of the branch or conversation in the answer, If-None-Match the hash of its bytes, since
// much of an answer has no revision of its own. An answer without a revision has only the hash; the result of a change has only the revision.

// tagOf returns the tag of an answer.
func tagOf(revision *uint64, shown []byte) string {
	var parts []string
	if revision != nil {
		parts = append(parts, strconv.FormatUint(*revision, 10))
	}
	if shown != nil {
		sum := sha256.Sum256(shown)
		parts = append(parts, hex.EncodeToString(sum[:12]))
	}
	if len(parts) == 0 {
		return ""
	}
	return `"` + strings.Join(parts, "-") + `"`
}

// match is the content of If-Match.
type match struct {
	any       bool // "*"
	revisions []uint64
}

// matchOf parses If-Match; it returns nil if there is none. Weak tags and tags without a revision match nothing.
func matchOf(h http.Header) (*match, error) {
	tags, err := tagsOf(h, "If-Match")
	if len(tags) == 0 || err != nil {
		return nil, err
	}
	m := &match{}
	for _, t := range tags {
		m.any = m.any || t == "*"
		number, _, _ := strings.Cut(strings.Trim(t, `"`), "-")
		if n, err := strconv.ParseUint(number, 10, 64); err == nil && !strings.HasPrefix(t, "W/") {
			m.revisions = append(m.revisions, n)
		}
	}
	return m, nil
}

func (m *match) has(revision uint64) bool { return m.any || slices.Contains(m.revisions, revision) }

// noneMatches reports whether If-None-Match does not name the answer's tag, weak or not.
func noneMatches(h http.Header, tag string) (bool, error) {
	tags, err := tagsOf(h, "If-None-Match")
	for _, t := range tags {
		if t == "*" || strings.TrimPrefix(t, "W/") == tag {
			return false, err
		}
	}
	return true, err
}

// tagsOf returns the tags of a header: each in quotes, perhaps weak, or a star.
func tagsOf(h http.Header, name string) ([]string, error) {
	var tags []string
	for _, line := range h.Values(name) {
		for _, t := range strings.Split(line, ",") { // our tags have no comma
			switch t = strings.TrimSpace(t); {
			case t == "":
			case t == "*", len(strings.TrimPrefix(t, "W/")) >= 2 && strings.HasPrefix(strings.TrimPrefix(t, "W/"), `"`) && strings.HasSuffix(t, `"`):
				tags = append(tags, t)
			default:
				return nil, base.Invalid("%s is %q, and has to be tags in quotes as answers have them, or *", name, line)
			}
		}
	}
	return tags, nil
}
