package input

import (
	"os"

	"golang.org/x/sys/unix"
)

// inPipe returns how many bytes wait in a pipe.
func inPipe(f *os.File) int {
	n, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCINQ)
	if err != nil {
		return 0
	}
	return n
}
