package approval

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
)

// untold returns why it cannot be told where a path leads, "" if it can: something in it is replaced when it is used.
func untold(path string) string {
	switch {
	case path == "" || strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "it is not a path"
	case hasHalves(path):
		return "it is not text"
	case strings.TrimSpace(path) != path:
		return "it has white space around it"
	case path[0] == '~':
		return "~ is another folder for everybody"
	case variable().MatchString(path):
		return "a variable may be put in"
	case drive().MatchString(path) && runtime.GOOS == "windows":
		return ""
	case drive().MatchString(path):
		return "it has a drive letter"
	case scheme().MatchString(path):
		return "it has a scheme"
	case strings.Contains(path, `\`) && runtime.GOOS != "windows":
		return "\\ divides names on other systems"
	}
	return ""
}

var (
	variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$[A-Za-z_{]`) })
	drive    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z]:`) })
	scheme   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`) })
)

// absoluteFolder returns a rule's folder as it is stored: absolute, with links resolved. A relative one is relative to dir.
func absoluteFolder(folder, dir string) (string, error) {
	if why := untold(folder); why != "" {
		return "", fmt.Errorf("under needs a folder, not %q: %s", folder, why)
	}
	if !filepath.IsAbs(folder) && dir == "" {
		return "", fmt.Errorf("under needs an absolute folder, not %q", folder)
	}
	return realPath(folder, dir, false)
}

// under returns whether a path lies in an absolute folder, with all symlinks resolved. A path to something that does not exist counts by where it would be.
// Programs read a .. after a link in two ways, and the folder itself may have become a link; if these readings differ, the answer is unsure. A relative
// path is relative to dir; with "" the answer is unsure. folded ignores the case of names.
func under(path, folder, dir string, folded bool) (answer, string) {
	if why := untold(path); why != "" {
		return unsure, fmt.Sprintf("%q is undecided: %s", path, why)
	}
	if !filepath.IsAbs(path) && dir == "" {
		return unsure, fmt.Sprintf("%q is undecided: it is relative, and no folder is set", path)
	}
	if !filepath.IsAbs(folder) {
		return unsure, fmt.Sprintf("the folder %s of the rule is not absolute", folder)
	}
	now, err := realPath(folder, "", false)
	if err != nil {
		return unsure, fmt.Sprintf("%s cannot be resolved: %v", folder, err)
	}
	inside, of := 0, 0
	var at string
	for _, in := range []string{folder, now} {
		for _, clean := range []bool{true, false} {
			if at, err = realPath(path, dir, clean); err != nil {
				return unsure, fmt.Sprintf("%q cannot be resolved: %v", path, err)
			}
			of++
			if lies(at, in, folded) {
				inside++
			}
		}
	}
	switch inside {
	case 0:
		return no, fmt.Sprintf("%q is %s, not in %s", path, at, folder)
	case of:
		return yes, fmt.Sprintf("%q is %s, in %s", path, at, folder)
	}
	return unsure, fmt.Sprintf("%q is %s, perhaps in %s", path, at, folder)
}

func lies(path, folder string, folded bool) bool {
	if folded {
		path, folder = fold(path), fold(folder)
	}
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// maxLinks bounds the symlinks of one path.
const maxLinks = 255

// procFolder has links that depend on the process: /proc/self/cwd is the folder of this program, not of the tool. /dev/fd and /dev/stdin lead there.
const procFolder = "/proc"

// realPath makes a path absolute, relative to dir, and resolves its symlinks name by name, even links to something that does not exist. clean first removes
// each .. with the name before it.
func realPath(path, dir string, clean bool) (string, error) {
	path = filepath.FromSlash(path)
	if !filepath.IsAbs(path) {
		path = dir + string(filepath.Separator) + path
	}
	if clean {
		path = filepath.Clean(path)
	}
	volume := filepath.VolumeName(path)
	return resolve(volume, names(path[len(volume):]))
}

func names(path string) []string { return strings.Split(path, string(filepath.Separator)) }

// resolve walks down from a volume's root.
func resolve(volume string, left []string) (string, error) {
	done := volume + string(filepath.Separator)
	for links := 0; len(left) > 0; {
		name := left[0]
		left = left[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		done = filepath.Join(done, name)
		to, err := os.Readlink(done)
		if err != nil {
			if st, err := os.Lstat(done); err == nil && st.Mode()&fs.ModeSymlink != 0 || errors.Is(err, fs.ErrPermission) {
				return "", fmt.Errorf("%s cannot be read", done)
			}
			continue // no link, or nothing there
		}
		if lies(done, procFolder, false) {
			return "", fmt.Errorf("%s leads to another place for each program", done)
		}
		if links++; links > maxLinks {
			return "", errors.New("its links go round in circles")
		}
		done = filepath.Dir(done)
		to = filepath.FromSlash(to)
		if filepath.IsAbs(to) {
			done = filepath.VolumeName(to) + string(filepath.Separator)
		}
		left = append(names(to[len(filepath.VolumeName(to)):]), left...)
	}
	return done, nil
}
