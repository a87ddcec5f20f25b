package exchange

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/storetest"
)

// atOnceEnv has the store and the folder of a process that TestEditedCopiesAtOnce starts.
const atOnceEnv = "CHATCTX_TEST_AT_ONCE"

// importAtOnce is such a process: it opens the store, says so, and when its input ends imports the files of the folder one after the other, so that it takes
// turns with the others.
func importAtOnce(t *testing.T, store, dir string) {
	s, err := chatctx.Open(store, chatctx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fmt.Println("open")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		rep, err := Import(context.Background(), s, []string{file}, Options{})
		if err != nil || rep.Failed > 0 || rep.Skipped > 0 {
			t.Fatalf("%s: %+v, %v", file, rep, err)
		}
	}
}

// TestEditedCopiesAtOnce has processes import differently edited copies of one file at the same time, and one a longer copy. Each conversation is at the end as
// after some order of the three, nothing is there twice, and a further import of all adds nothing.
func TestEditedCopiesAtOnce(t *testing.T) {
	if store, folder, is := strings.Cut(os.Getenv(atOnceEnv), "|"); is {
		importAtOnce(t, store, folder)
		return
	}
	dir := t.TempDir()
	const conversations, parts = 40, 8
	var folders []string
	for i, copyOf := range []func(c int) (asked, answered string, more bool){
		func(c int) (string, string, bool) { return "question", fmt.Sprint("answer by the first, ", c), false },
		func(c int) (string, string, bool) { return "question", fmt.Sprint("answer by the second, ", c), false },
		func(c int) (string, string, bool) { return fmt.Sprint("question by the third ", c%3), "answer", true },
	} {
		folder := filepath.Join(dir, fmt.Sprint("copy", i))
		for part := range parts {
			name := part
			if i == 1 {
				name = parts - 1 - part // it begins where the others end
			}
			write(t, filepath.Join(folder, fmt.Sprint(name, ".json")), editedCopy(part*conversations/parts, (part+1)*conversations/parts, i, copyOf))
		}
		folders = append(folders, folder)
	}
	allowed := afterSomeOrder(t, folders)
	store := filepath.Join(dir, "chats.db")
	s, err := chatctx.Open(store, chatctx.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	importEachAtOnce(t, store, folders)
	storetest.Check(t, s)
	got := eachConversation(contentsOf(t, s))
	if len(got) != conversations {
		t.Errorf("%d conversations", len(got))
	}
	for _, c := range got {
		if !allowed[c] {
			t.Errorf("as after no order of the three:\n%s", c)
		}
	}
	if again := importInto(t, s, folders...); again.Messages != 0 || again.Contexts != 0 || again.Branches != 0 {
		t.Errorf("imported again, they add %+v", again)
	}
}

// afterSomeOrder returns the conversations as they are after each order of imports of three folders.
func afterSomeOrder(t *testing.T, folders []string) map[string]bool {
	t.Helper()
	allowed := map[string]bool{}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		s := memoryStore(t)
		for _, i := range order {
			importInto(t, s, folders[i])
		}
		for _, c := range eachConversation(contentsOf(t, s)) {
			allowed[c] = true
		}
	}
	return allowed
}

// importEachAtOnce has a process import each folder. All have opened the store before one begins.
func importEachAtOnce(t *testing.T, store string, folders []string) {
	t.Helper()
	var begin, end []func() error
	for _, folder := range folders {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestEditedCopiesAtOnce$")
		cmd.Env = append(os.Environ(), atOnceEnv+"="+store+"|"+folder)
		in, out := started(t, cmd)
		lines := bufio.NewReader(out)
		if line, err := lines.ReadString('\n'); line != "open\n" {
			t.Fatalf("%q, %v", line, err)
		}
		begin = append(begin, in.Close)
		end = append(end, func() error {
			said, _ := io.ReadAll(lines)
			if err := cmd.Wait(); err != nil {
				return fmt.Errorf("%w: %s", err, said)
			}
			return nil
		})
	}
	for _, step := range append(begin, end...) {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
}

// editedCopy returns an export of some conversations of two messages, with a third where more is set. The titles and the time of change are the copy's own.
func editedCopy(from, to, number int, said func(c int) (asked, answered string, more bool)) string {
	var list []string
	for c := from; c < to; c++ {
		asked, answered, more := said(c)
		node := func(id, parent, role, text string) string {
			return fmt.Sprintf(`%q:{"id":%q,"parent":%q,"message":{"author":{"role":%q},"content":{"content_type":"text","parts":[%q]}}}`, id, id, parent, role, text)
		}
		nodes, current := []string{node("q", "", "user", asked), node("a", "q", "assistant", answered)}, "a"
		if more {
			nodes, current = append(nodes, node("m", "a", "user", "more")), "m"
		}
		list = append(list, fmt.Sprintf(`{"conversation_id":"c%d","title":"Title %d of %d","update_time":%d,"current_node":%q,"mapping":{%s}}`,
			c, number, c, 1700000000+number*60, current, strings.Join(nodes, ",")))
	}
	return "[" + strings.Join(list, ",\n") + "]"
}

// eachConversation divides what contentsOf describes.
func eachConversation(contents string) []string {
	var out []string
	for line := range strings.Lines(contents) {
		if !strings.HasPrefix(line, " ") {
			out = append(out, "")
		}
		out[len(out)-1] += line
	}
	return out
}
