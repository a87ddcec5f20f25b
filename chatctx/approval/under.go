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
	case encoded().MatchString(path):
		return "programs that decode % read another path"
	case path[0] == '~':
		return "~ is another folder for everybody"
	case variable().MatchString(path):
		return "a variable may be put in"
	case runtime.GOOS == "windows" && otherOnWindows(path) != "":
		return otherOnWindows(path)
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

// encoded matches dots, separators and ends of texts that are written with %, however often.
var encoded = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)%(25)*(00|2e|2f|5c|c0|c1|e0%80|f0%80|u[0-9a-f]{4})`)
})

// encodedDot matches dots that are written so.
var encodedDot = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)%(25)*(2e|c0|e0%80|f0%80|u002e)`) })

// otherOnWindows returns why Windows may open another file than a path names, "" if it does not.
func otherOnWindows(path string) string {
	rest := path
	if drive().MatchString(path) {
		rest = path[2:]
		if rest == "" || rest[0] != '\\' && rest[0] != '/' {
			return "it is relative to another drive's folder"
		}
	}
	if slashes := strings.ReplaceAll(path, `\`, "/"); strings.HasPrefix(slashes, "//?/") || strings.HasPrefix(slashes, "//./") || strings.HasPrefix(slashes, "/??/") {
		return "it names a device"
	}
	if strings.Contains(rest, ":") {
		return "Windows reads what follows : as a stream of the file"
	}
	for _, name := range strings.FieldsFunc(rest, func(r rune) bool { return r == '/' || r == '\\' }) {
		base, _, _ := strings.Cut(strings.ToUpper(name), ".")
		switch {
		case name == "." || name == "..":
		case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
			return "Windows drops dots and spaces at the end of a name"
		case devices().MatchString(strings.TrimRight(base, " ")):
			return "Windows has a device of this name"
		case shortened().MatchString(name):
			return "it may be the short name of another file"
		case percents().MatchString(name):
			return "a variable may be put in"
		}
	}
	return ""
}

var (
	devices = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(COM|LPT)[0-9¹²³])$`)
	})
	shortened = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`~[0-9]`) })
	percents  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`%[A-Za-z_][A-Za-z0-9_]*%`) })
)

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
