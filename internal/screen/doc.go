// Package screen lays out conversations for a terminal: it makes text safe to print, measures and cuts it, and renders messages and calls as text, branches as
// a tree, and Markdown as lines.
//
// Everything from a model, a file or another program passes through Clean, or through a function here that uses it, before it is printed. The package prints
// nothing. Only FileChange reads anything but its arguments.
package screen
