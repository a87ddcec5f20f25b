package input

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

var peekNamedPipe = windows.NewLazySystemDLL("kernel32.dll").NewProc("PeekNamedPipe")

// inPipe returns how many bytes wait in a pipe.
func inPipe(f *os.File) int {
	var n uint32
	if ok, _, _ := peekNamedPipe.Call(f.Fd(), 0, 0, 0, uintptr(unsafe.Pointer(&n)), 0); ok == 0 {
		return 0
	}
	return int(n)
}
