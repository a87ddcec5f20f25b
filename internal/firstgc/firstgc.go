// Package firstgc puts off a program's first garbage collection until the heap has 16 MB instead of 4. Most commands end before that, and a collection of what
// the initialisers made costs a third of their processor time. From the first collection on the collector works as usual.
//
// It owns no more than that. A program that wants it imports it, for its initialiser, which imports little and so runs before those of large packages. A
// library must never import it: the collector is its program's.
package firstgc

import (
	"os"
	"runtime"
	"runtime/debug"
)

// usual and first are the collector's percent: the least heap that it collects is 4 MB for 100.
const usual, first = 100, 400

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(first)
		runtime.SetFinalizer(new([16]byte), func(*[16]byte) { debug.SetGCPercent(usual) }) // the first collection finds it
	}
}
