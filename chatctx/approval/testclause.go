package approval

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// binaryTest reads X OP Y in [[ ]].
func (s *reader) binaryTest(n *syntax.BinaryTest) {
	switch op := n.Op.String(); {
	case n.Op == syntax.AndTest, n.Op == syntax.OrTest:
	case op == "<", op == ">", op == "=~":
		s.only(bash, "[[ … "+op)
	case !plainTest(op):
		s.cannot("it computes in [[ ]], which may run commands")
	default:
		s.compared(n.X)
		s.compared(n.Y)
	}
}

// unaryTest reads OP X in [[ ]].
func (s *reader) unaryTest(n *syntax.UnaryTest) {
	if n.Op == syntax.TsNot {
		return
	}
	if !plainTest(n.Op.String()) {
		s.cannot("it computes in [[ ]], which may run commands")
	}
	s.compared(n.X)
}

// compared: other shells than bash have patterns of their own.
func (s *reader) compared(x syntax.TestExpr) {
	w, ok := x.(*syntax.Word)
	if !ok {
		return
	}
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok && strings.ContainsAny(lit.Value, "*?[]~{}()") {
			s.only(bash, "a pattern in [[ ]]")
		}
	}
}
