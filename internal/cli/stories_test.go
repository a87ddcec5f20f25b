package cli

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestStoriesAreShort holds that each story of testdata/talk/stories.txtar takes no more commands than its heading says.
func TestStoriesAreShort(t *testing.T) {
	script, err := os.ReadFile("testdata/talk/stories.txtar")
	if err != nil {
		t.Fatal(err)
	}
	heading, command := regexp.MustCompile(`^# story (\d): (.+)`), regexp.MustCompile(`^(\[unix\] )?(! |exits \d+ )?chatctx `)
	stories, title, left := 0, "", -1 // left is -1 between stories
	for line := range strings.Lines(string(script)) {
		switch m := heading.FindStringSubmatch(line); {
		case m != nil && left >= 0:
			t.Fatalf("%q has no # so:", title)
		case m != nil:
			stories++
			title = m[2]
			left, _ = strconv.Atoi(m[1])
		case strings.HasPrefix(line, "# so:"):
			left = -1
		case left >= 0 && command.MatchString(line):
			if left--; left < 0 {
				t.Fatalf("%q takes one command too many: %s", title, line)
			}
		}
	}
	if stories < 28 {
		t.Errorf("%d stories, of at least 28", stories)
	}
}
