package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
)

// typed is the file with what was typed in chats: a line each, as JSON, the oldest first.
type typed struct{ path string } // "": none is kept

// How much is kept, and how much there may be before the file is written anew.
const (
	keptTyped = 1000
	mostTyped = 2 * keptTyped
)

// openTyped finds the file: what CHATCTX_HISTORY says, where an empty one means none, else history in the folder for what programs note.
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

// lines reads what was typed. What cannot be read is left out: a chat goes without.
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

// write puts a whole file in the place of the one before.
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

// longestTyped bounds what is kept of one line: what is longer was pasted.
const longestTyped = 16000

// add puts a line at the end. A file that cannot be written keeps nothing: no chat fails for that.
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
