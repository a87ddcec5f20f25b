package record

// Undone is the result of an undo or redo.
type Undone struct {
	Committed
	Undid  *Operation
	Broken []Broken // the examples that restored deny rules break
}
