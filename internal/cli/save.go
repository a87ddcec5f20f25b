package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// saveNew writes an image or a file of a message into a folder, which it makes. It never overwrites a file: a second one of a name gets a number.
func saveNew(dir, name, mediaType string, place int, b []byte) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return writeNew(dir, fileName(name, mediaType, place), b)
}

// writeNew writes a new file, under the name or the name with a number, and returns its path. It removes a file that it could not write completely.
func writeNew(dir, name string, b []byte) (string, error) {
	ext := filepath.Ext(name)
	base := strings.TrimSuffix(name, ext)
	for n := 1; ; n++ {
		path := filepath.Join(dir, name)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) && n < 10000 {
			name = fmt.Sprintf("%s-%d%s", base, n+1, ext)
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(b)
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(path)
			return "", err
		}
		return path, nil
	}
}

// fileName makes a safe file name: without folders, not hidden, and accepted by every system. A part without a name is named after its place in the
// message.
func fileName(name, mediaType string, place int) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(c rune) rune {
		if strings.ContainsRune(`<>:"|?*`+"\n\t", c) || !unicode.IsPrint(c) {
			return '_'
		}
		return c
	}, strings.ToValidUTF8(name, "_"))
	name = strings.TrimRight(strings.TrimLeft(name, ". -"), ". ")
	stem, _, _ := strings.Cut(name, ".")
	if reservedName(stem) {
		name = "_" + name
	}
	for len(name) > 120 { // in bytes, and never within a character
		ext := filepath.Ext(name)
		if len(ext) > 20 {
			ext = ""
		}
		runes := []rune(strings.TrimSuffix(name, ext))
		name = string(runes[:len(runes)-1-len(runes)/20]) + ext
	}
	if name == "" {
		name = fmt.Sprintf("part-%d%s", place, extension(mediaType))
	}
	return name
}

// reservedName reports the names that Windows keeps for devices. It ignores blanks at their end, and takes superscript digits for digits.
func reservedName(stem string) bool {
	s := strings.ToUpper(strings.TrimRight(stem, " "))
	switch s {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	digit, isPort := strings.CutPrefix(s, "COM")
	if !isPort {
		digit, isPort = strings.CutPrefix(s, "LPT")
	}
	return isPort && utf8.RuneCountInString(digit) == 1 && strings.Contains("0123456789¹²³", digit)
}

func extension(mediaType string) string {
	known := map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "application/pdf": ".pdf", "text/plain": ".txt"}
	if e, ok := known[mediaType]; ok {
		return e
	}
	if list, _ := mime.ExtensionsByType(mediaType); len(list) > 0 {
		return list[0]
	}
	return ".bin"
}
