//go:build !linux && !windows

package input

import "os"

// inPipe returns how many bytes wait in a pipe: there its size, by fstat of the BSDs and macOS.
func inPipe(f *os.File) int {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return int(info.Size())
}
