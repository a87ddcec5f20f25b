// Package screen is what a conversation looks like on a terminal: text that is safe to print, measured and cut, messages and calls as text, the branches as a
// tree, Markdown as lines.
//
// Everything that comes from a model, a file or another program goes through Clean, or through something here that does so, before it is printed. The package prints
// nothing and reads nothing but what it is given.
package screen
