package quote

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// own matches the lines that a frame says itself in these tests; marked those that are quoted.
var (
	own    = regexp.MustCompile(`^(|the end|Text after > .*)$`)
	marked = regexp.MustCompile(`^[a-z ,]*> `)
)

// poses are texts that try to be more than a quotation.
func poses(t *testing.T) (out []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "poses.json"))
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return append(out, "\xff\nthe end", "\xc2\nthe end", "\xed\xa0\x80\nthe end")
}

// TestQuotationsStayInTheFrame: whatever is quoted, each line of an answer is the frame's own, or marked.
func TestQuotationsStayInTheFrame(t *testing.T) {
	all := poses(t)
	if len(all) < 500 {
		t.Fatalf("only %d texts", len(all))
	}
	for _, text := range all {
		for _, most := range []int{4096, 300, 200, 170} {
			f := New(most)
			f.Name("title", text)
			f.Name("denied, because", text)
			clean := Clean(text)
			f.Text(clean, f.Left()-20)
			f.Say("the end")
			ends := 0
			for line := range strings.SplitSeq(strings.TrimSuffix(f.String(), "\n"), "\n") {
				if own.MatchString(line) {
					if line == "the end" {
						ends++
					}
				} else if !marked.MatchString(line) {
					t.Errorf("%q: the line %q is neither the frame's nor marked", text, line)
				}
				if strings.ContainsAny(line, "\r\v\f\x1b\x00\u0085\u2028\u2029\u202e\u200b") {
					t.Errorf("%q: %q has a character that ends a line or is not seen", text, line)
				}
			}
			if ends != 1 {
				t.Errorf("%q: the frame ends %d times:\n%s", text, ends, f)
			}
		}
	}
}

// TestTextGoesOn: parts of a text that are quoted one after the other are the text, and each is at most as long as it may be.
func TestTextGoesOn(t *testing.T) {
	text := Clean("ein Löwe 獅子\n\n" + strings.Repeat("Zeile eins\nzwei 🦁🦁 ", 40))
	for most := 8; most < 200; most += 7 {
		var got strings.Builder
		for at := 0; at < len(text); {
			f := &Frame{}
			n := f.Text(text[at:], most)
			if n <= 0 || len(f.String()) > most || !utf8.ValidString(f.String()) {
				t.Fatalf("at %d of %d, most %d: %d bytes in %q", at, len(text), most, n, f)
			}
			got.WriteString(text[at : at+n])
			at += n
		}
		if got.String() != text {
			t.Errorf("most %d: it is another text", most)
		}
	}
}

// TestSecretsAreLeftOut: a key is found as it is read, not as it was hidden.
func TestSecretsAreLeftOut(t *testing.T) {
	key := "ghp_" + "x7Q2mN9vKp4RtY8wLs3BzD6fHj1CgA5eUoXi" // made up
	for _, text := range []string{"token " + key + " end", "token gh\u200bp_" + key[4:] + " end", "token " + key[:12] + "\u2060" + key[12:] + " end", fmt.Sprintf("{\"token\":%q}", key)} {
		if got := Clean(text); strings.Contains(got, key[8:]) || !strings.Contains(got, "[secret]") {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := Clean("no key here, ghp_ alone"); got != "no key here, ghp_ alone" {
		t.Errorf("%q", got)
	}
}
