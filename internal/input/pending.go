package input

import (
	"io"
	"os"
)

// Offered tells whether standard input is something that a shell put in front of the command for it to read: a pipe, or a regular file that nobody has read from yet.
// Terminals, other devices, sockets, a file that another program is reading through, and a closed input are not. It reads nothing.
func Offered(f *os.File) bool {
	info, err := f.Stat()
	switch {
	case err != nil:
		return false
	case info.Mode()&os.ModeNamedPipe != 0:
		return true
	case !info.Mode().IsRegular():
		return false
	}
	at, err := f.Seek(0, io.SeekCurrent)
	return err == nil && at == 0
}

// Pending tells, without waiting and without reading, whether an offered input has bytes now.
func Pending(f *os.File) bool {
	if !Offered(f) {
		return false
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		return info.Size() > 0
	}
	return err == nil && inPipe(f) > 0
}
