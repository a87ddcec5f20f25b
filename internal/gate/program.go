package gate

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/chatctx/chatctx/internal/base"
)

// Program returns the path of chatctx for the hook's command: the one that a person names, else as PATH has the program that runs, unresolved, so that an upgrade
// that moves a link keeps it true. A place from which it may go by itself is refused.
func Program(named, running string) (string, error) {
	if named != "" {
		path, err := filepath.Abs(named)
		if err == nil {
			path, err = exec.LookPath(path)
		}
		if err != nil {
			return "", base.Invalid("%s is no program", named)
		}
		return path, nil
	}
	path, err := exec.LookPath(filepath.Base(running))
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", base.Invalid("%s is not on PATH: put it there, or name it with --program", filepath.Base(running))
	}
	if here, err := os.Executable(); err == nil && !sameFile(path, here) {
		return "", base.Invalid("PATH has another program, %s: name the one that the hook starts with --program", path)
	}
	for _, dir := range append([]string{os.TempDir()}, "/tmp", "/var/tmp", "/dev/shm", "/run") {
		if strings.HasPrefix(path, filepath.Clean(dir)+string(filepath.Separator)) {
			return "", base.Invalid("%s is in a temporary place, and without it every call is denied: put it elsewhere on PATH, or name it with --program", path)
		}
	}
	return path, nil
}

// Gone reports whether the program of the hook's command is no more: then the command denies every call.
func (e *Entry) Gone() bool {
	_, err := exec.LookPath(e.Program)
	return err != nil
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// Notes say what a person has to know of an agent's hooks.
func (a *Agent) Notes() (all []string) {
	switch a.Name {
	case "claude-code":
		all = append(all, "a repository's .claude/settings.json can switch all hooks off")
	case "gemini":
		all = append(all, "without a person at the terminal Gemini CLI offers its shell only with -y, and the hook is then the only gate")
	}
	return all
}

// HookStore returns the store as the hook's command names it. Agents show that command to models.
func HookStore(path string) (string, error) {
	if strings.Contains(path, "://") {
		return "", base.Invalid("the hook's command names a store in a file: agents show it to models, and an address may hold a password")
	}
	return filepath.Abs(path)
}
