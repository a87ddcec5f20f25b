package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
)

// typed is the file with what was typed in chats: a line for each text, as JSON, the oldest first.
type typed struct{ path string } // "": none is kept

// The number of texts that are kept, and the number above which the file is rewritten.
const (
	keptTyped = 1000
	mostTyped = 2 * keptTyped
)

// openTyped finds the file: that of CHATCTX_HISTORY, where "" means none, else history in stateDir.
func openTyped() *typed {
	if path, set := os.LookupEnv("CHATCTX_HISTORY"); set {
		return &typed{path}
	}
	dir, err := stateDir()
	if err != nil {
		return &typed{}
	}
	return &typed{filepath.Join(dir, "history")}
}

// lines reads what was typed. It leaves out what it cannot read, since a chat works without.
func (t *typed) lines() []string {
	if t.path == "" {
		return nil
	}
	f, err := os.Open(t.path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var all []string
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var line string
		if json.Unmarshal(in.Bytes(), &line) == nil {
			all = append(all, line)
		}
	}
	if len(all) > mostTyped {
		all = all[len(all)-keptTyped:]
		t.write(all)
	}
	return all
}

// write replaces the file as a whole.
func (t *typed) write(all []string) {
	f, err := os.CreateTemp(filepath.Dir(t.path), ".history.*")
	if err != nil {
		return
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for _, line := range all {
		_ = e.Encode(line) // a text is always JSON
	}
	_, err = f.Write(b.Bytes())
	if f.Close() != nil || err != nil || os.Rename(f.Name(), t.path) != nil {
		os.Remove(f.Name())
	}
}

// longestTyped bounds the lines that are kept, in bytes: a longer one was pasted.
const longestTyped = 16000

// add appends a line. If the file cannot be written, nothing is kept, and no chat fails.
func (t *typed) add(line string) {
	if t.path == "" || len(bytes.TrimSpace([]byte(line))) == 0 || len(line) > longestTyped {
		return
	}
	if os.MkdirAll(filepath.Dir(t.path), 0o700) != nil {
		return
	}
	f, err := os.OpenFile(t.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	b, _ := json.Marshal(line)
	_, _ = f.Write(append(b, '\n'))
}
