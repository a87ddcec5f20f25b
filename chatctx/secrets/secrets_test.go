package secrets

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// made puts random letters behind a known beginning, so that no key stands in this file.
func made(begin, letters string, n int) string {
	rnd := rand.New(rand.NewPCG(uint64(n), 4))
	var b strings.Builder
	b.WriteString(begin)
	for range n {
		b.WriteByte(letters[rnd.IntN(len(letters))])
	}
	return b.String()
}

const alnum = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

func TestFind(t *testing.T) {
	for rule, secret := range map[string]string{
		"github-pat":        made("gh"+"p_", alnum, 36),
		"aws-access-token":  made("AK"+"IA", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16),
		"anthropic-api-key": made("sk-"+"ant-api03-", alnum, 93) + "AA",
		"openai-api-key":    made("sk-"+"proj-", alnum, 74) + "T3Blbk" + "FJ" + made("", alnum, 74),
		"gcp-api-key":       made("AI"+"za", alnum, 35),
	} {
		text := "the key is " + secret + " , keep it\n"
		found, err := Find(text)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != 1 || text[found[0].From:found[0].To] != secret {
			t.Errorf("%s: found %v in %q", rule, found, text)
		}
	}
	for _, text := range []string{"", "Where should we go in May?", "sk-ant is how they begin", "the key is under the mat", "AKIAIOSFODNN7EXAMPLE"} {
		if found, err := Find(text); err != nil || len(found) != 0 {
			t.Errorf("%q: found %v, %v", text, found, err)
		}
	}
}
