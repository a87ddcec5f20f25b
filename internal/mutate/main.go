// Command mutate plants the bugs of a table, one at a time, in a copy of the tree and runs the tests that have to catch them. It prints which were caught
// and ends with 1 where one survived, or where a text of the table no longer stands in the code: then the table is to be brought up to date.
//
//	go run ./internal/mutate            all of them
//	go run ./internal/mutate claim gc   those whose description has one of the words
//
// A bug is looked for by its text, wherever it stands and however it is broken into lines, so that moving code leaves the table as it is.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// bug is one entry of the table.
type bug struct {
	about    string
	old, new string   // the text in the code, which stands there once, and what takes its place
	tests    []string // what has to catch it, in order: PACKAGE or PACKAGE:TESTS, with TESTS as for go test -run
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(words []string) error {
	root, err := copyTree()
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	files, err := sources(root)
	if err != nil {
		return err
	}
	wrong, all := 0, 0
	for _, b := range bugs {
		if !chosen(b.about, words) {
			continue
		}
		all++
		begun := time.Now()
		result, caught := b.try(root, files)
		if !caught {
			wrong++
		}
		fmt.Printf("%-9s %5.1fs  %s\n", result, time.Since(begun).Seconds(), b.about)
	}
	fmt.Printf("%d bugs, %d caught\n", all, all-wrong)
	if wrong > 0 {
		return fmt.Errorf("%d bugs were not caught", wrong)
	}
	return nil
}

// chosen reports whether a description has one of the words; none asks for all.
func chosen(about string, words []string) bool {
	for _, w := range words {
		if strings.Contains(about, w) {
			return true
		}
	}
	return len(words) == 0
}

// copyTree copies the module that holds the working directory to a temporary folder.
func copyTree() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	from := strings.TrimSpace(string(out))
	to, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return "", err
	}
	return to, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case d.Name() == ".git":
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, 0o644)
	})
}

// sources reads the files in which bugs are planted.
func sources(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || filepath.Base(path) == "mutate") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			files[path], err = os.ReadFile(path)
		}
		return err
	})
	return files, err
}

// try plants a bug, runs the tests and takes the bug out again. The result is caught, survived, or why it cannot be planted.
func (b *bug) try(root string, files map[string][]byte) (result string, caught bool) {
	path, planted := b.plant(files)
	if path == "" {
		return "no place", false
	}
	if err := os.WriteFile(path, planted, 0o644); err != nil {
		return err.Error(), false
	}
	defer func() { _ = os.WriteFile(path, files[path], 0o644) }()
	if out, err := goCommand(root, "build", "./..."); err != nil {
		return "no build: " + firstLine(out), false
	}
	for _, tests := range b.tests {
		pkg, names, _ := strings.Cut(tests, ":")
		out, err := goCommand(root, "test", "-short", "-count=1", "-timeout=3m", "-run="+names, "./"+pkg)
		var ended *exec.ExitError
		switch {
		case err == nil:
		case !errors.As(err, &ended) || bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
			return "no test: " + firstLine(out), false
		default:
			return "caught", true
		}
	}
	return "survived", false
}

// plant gives the file that the bug's text stands in, and what the file is with the bug; "" where the text stands nowhere or in several places.
func (b *bug) plant(files map[string][]byte) (path string, planted []byte) {
	var words []string
	for _, w := range strings.Fields(b.old) {
		words = append(words, regexp.QuoteMeta(w))
	}
	text := regexp.MustCompile(strings.Join(words, `\s+`))
	for name, data := range files {
		at := text.FindAllIndex(data, 2)
		if len(at) == 0 {
			continue
		}
		if len(at) > 1 || path != "" {
			return "", nil
		}
		path = name
		planted = append(append(bytes.Clone(data[:at[0][0]]), b.new...), data[at[0][1]:]...)
	}
	return path, planted
}

func goCommand(root string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	return cmd.CombinedOutput()
}

// firstLine is the first line that says something.
func firstLine(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return ""
}
