package secrets

import (
	"bytes"
	"encoding/json"
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

// TestTable holds the table to what is read of it: no field is unknown, every expression compiles, and every keyword can be met.
func TestTable(t *testing.T) {
	d := json.NewDecoder(bytes.NewReader(table))
	d.DisallowUnknownFields()
	var list []rule
	if err := d.Decode(&list); err != nil {
		t.Fatal(err)
	}
	if len(list) < 200 {
		t.Errorf("only %d rules", len(list))
	}
	var all strings.Builder
	for _, r := range list {
		if r.ID == "" || r.Regex == "" {
			t.Errorf("a rule without a name or an expression: %+v", r)
		}
		for _, k := range r.Keywords {
			if k != strings.ToLower(k) {
				t.Errorf("%s: the keyword %q is not in lower case", r.ID, k)
			}
			all.WriteString(k + " = \"" + made("", alnum, 40) + "\"\n")
		}
	}
	if found, err := Find(all.String()); err != nil || len(found) < 20 {
		t.Errorf("found %d, %v", len(found), err)
	}
	own, err := rules()
	if err != nil {
		t.Fatal(err)
	}
	for i := range own {
		own[i].expression()
		for k := range own[i].Allowed {
			own[i].Allowed[k].expressions()
		}
	}
}
