// Figures counts what the project's bars are about, so that each figure in a note can be counted again:
//
//	go run ./internal/figures lines [REVISION…]   lines of Go without tests, of the files of a revision (HEAD)
//	go run ./internal/figures api [-list]         exported functions, methods and types of the public packages, of the files that are here
//
// It is run in the folder of the main module.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

// run does what a command line asks for.
func run(args []string) error {
	switch {
	case len(args) > 0 && args[0] == "lines":
		revisions := args[1:]
		if len(revisions) == 0 {
			revisions = []string{"HEAD"}
		}
		for _, revision := range revisions {
			l, err := linesAt(revision)
			if err != nil {
				return err
			}
			fmt.Printf("%s: %d lines of Go without tests, %d as they stand; %.1f %% comments\n", revision, l.counted, l.written, l.commentShare())
		}
		return nil
	case len(args) > 0 && args[0] == "api":
		names, err := api()
		if err != nil {
			return err
		}
		if slices.Contains(args[1:], "-list") {
			fmt.Println(strings.Join(names, "\n"))
		}
		fmt.Println(summary(names))
		return nil
	}
	return fmt.Errorf("type lines [REVISION…], or api [-list]")
}
