// Package ui is the full-screen program `chatctx ui` and the picker of `use` and `switch`: conversations, the tree of one of them, and what its messages say.
//
// It draws with the layout of package screen and makes every change through the same calls of the library as the commands. What is on the screen is read when it
// comes on the screen: a key reads no more than a screen holds, however large the store is. All reading happens beside the loop that takes keys, so a file that
// others hold delays what is shown and never what is typed. What others change appears by itself.
//
// It starts no programs of its own, but for the editor that its caller names, and answers of models and calls that the person asked for.
package ui
