// Package ui is the full-screen program `chatctx ui` and the picker of `use` and `switch`: conversations, the tree of one of them, and the text of its messages.
//
// It draws with the layout of package screen and makes every change with the same library calls as the commands. It reads content when that content comes on the
// screen: a key reads no more than a screen holds, however large the store is. All reading happens beside the loop that handles keys, so a file that others hold
// delays what is shown, but never what is typed. Changes by others appear by themselves.
//
// It starts no other program except the editor that its caller names, and asks for the answers of models and runs the calls that the person chose.
package ui
