package approval

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// script is what a shell text does, as far as that can be told without running it.
type script struct {
	commands []*simple
	files    []opened // the files that its redirections open, but for /dev/null and the standard streams
	// variables are all that it sets, and names those that may change what its programs do.
	variables, names []string
	moves            bool   // it goes to another folder, so that nobody knows where relative files are
	untold           string // why it cannot be told which commands run; "": it can
}

// simple is one simple command.
type simple struct {
	words []word
	// through: it only starts another command, which is judged in its place.
	through bool
}

// opened is a file that a redirection opens.
type opened struct {
	name    word
	written bool
}

// line returns the command on a line. Words with special characters are quoted.
func (c *simple) line() string {
	words := make([]string, len(c.words))
	for i, w := range c.words {
		words[i] = w.text
		if w.literal && (w.text == "" || strings.ContainsFunc(w.text, func(r rune) bool { return strings.ContainsRune(" \t\n'\"\\$`;&|<>()", r) })) {
			words[i] = "'" + strings.ReplaceAll(w.text, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// Limits of a script; beyond them it cannot be told what it does.
const (
	longestScript = 64 << 10
	deepestScript = 8 // scripts nested in scripts
)

// reader reads a shell text as all shells of its setting do.
type reader struct {
	*script
	setting
	text  string
	depth int
	in    []syntax.Node // from the whole text down to the node that is read
}

// readScript reads a shell text. What the shells of the setting, or the parser and they, read differently makes it untold.
func readScript(text string, at setting) *script {
	r := &reader{script: &script{}, setting: at, text: text}
	r.read()
	return r.script
}

// nested reads a text that a shell in the text is given. Nobody knows what that one finds set.
func (s *reader) nested(text string, shells dialect) {
	inner := &reader{script: s.script, setting: setting{shells: shells}, text: text, depth: s.depth + 1}
	inner.read()
}

func (s *reader) cannot(why string) {
	s.untold = cmp.Or(s.untold, why)
}

// only says that nobody can tell, unless all shells of the setting are among some.
func (s *reader) only(some dialect, what string) {
	if s.shells&^some != 0 {
		s.cannot("shells read " + what + " differently")
	}
}

func (s *reader) read() {
	switch {
	case len(s.text) > longestScript || s.depth > deepestScript:
		s.cannot("it is too long")
		return
	case s.shells == 0:
		s.cannot("nobody reads the language of the tool's shell here")
	case strings.ContainsFunc(s.text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }):
		s.cannot("it holds control characters")
	case strings.Contains(s.text, "\\\n") && strings.Contains(s.text, "#"):
		s.cannot("a comment may go on in the next line, or not") // the parser takes the next line as part of the comment, bash does not
	case joined().MatchString(s.text):
		s.cannot("a word or a sign goes on in the next line")
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(s.text), "")
	if err != nil {
		s.cannot("it is not shell text: " + err.Error())
	}
	if file == nil {
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			s.in = s.in[:len(s.in)-1]
			return true
		}
		s.node(n)
		s.in = append(s.in, n)
		return true
	})
}

// joined matches a backslash at the end of a line that does not stand by itself between two words, and one at the end of all.
var joined = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^ \t]\\\n|^\\\n|\\\z`) })

// substituted reports whether what is read stands in a substitution.
func (s *reader) substituted() bool {
	return slices.ContainsFunc(s.in, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return true
		}
		return false
	})
}

// node records what a node of the tree does by itself, apart from its children.
func (s *reader) node(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.File, *syntax.Subshell, *syntax.Block, *syntax.IfClause, *syntax.WhileClause, *syntax.Lit, *syntax.ParenTest:
	case *syntax.Stmt:
		s.statement(n)
	case *syntax.CallExpr:
		s.call(n)
	case *syntax.BinaryCmd:
		if n.Op == syntax.PipeAll {
			s.only(bash, "|&")
		}
	case *syntax.Redirect:
		s.redirect(n)
	case *syntax.Comment:
		if s.substituted() {
			s.cannot("a comment stands in a substitution")
		}
	case *syntax.ForClause:
		if n.Select || n.Braces {
			s.cannot("it is of another shell")
		}
	case *syntax.WordIter:
		s.alone(n.Name.Value)
	case *syntax.CaseClause:
		s.cases(n)
	case *syntax.CaseItem:
		if n.Op != syntax.Break {
			s.only(bash, n.Op.String())
		}
	case *syntax.FuncDecl:
		s.function(n)
	case *syntax.TimeClause:
		s.timed(n)
	case *syntax.DeclClause:
		s.declared(n)
	case *syntax.Assign: // read where it stands
	default:
		s.expression(n)
	}
}

// expression records what a node within a word, a test or a computation does by itself.
func (s *reader) expression(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.Word:
		s.word(n)
	case *syntax.SglQuoted:
		if n.Dollar {
			s.cannot("it holds $'…'")
		}
	case *syntax.DblQuoted:
		if n.Dollar {
			s.cannot(`it holds $"…"`)
		}
		s.parts(n.Parts)
	case *syntax.ParamExp:
		s.parameter(n)
	case *syntax.CmdSubst:
		s.substitution(n)
	case *syntax.ProcSubst:
		s.only(bash, "<(…)")
	case *syntax.ArithmExp:
		if n.Bracket || n.Unsigned || !ofNumbers(n.X) {
			s.cannot("it computes with names, which may run commands")
		}
	case *syntax.ArithmCmd:
		s.only(bash, "((…))")
		if n.Unsigned || !ofNumbers(n.X) {
			s.cannot("it computes with names, which may run commands")
		}
	case *syntax.BinaryArithm, *syntax.UnaryArithm, *syntax.ParenArithm: // read with the whole computation
	case *syntax.TestClause:
		s.only(bash|mksh|zsh, "[[")
	case *syntax.BinaryTest:
		s.binaryTest(n)
	case *syntax.UnaryTest:
		s.unaryTest(n)
	default:
		s.cannot("it is of one shell or another")
	}
}

// ofNumbers reports whether a computation has numbers and operators alone.
func ofNumbers(x syntax.ArithmExpr) bool {
	switch x := x.(type) {
	case *syntax.Word:
		return plainNumber(x.Lit())
	case *syntax.ParenArithm:
		return ofNumbers(x.X)
	case *syntax.UnaryArithm:
		return x.Op != syntax.Inc && x.Op != syntax.Dec && ofNumbers(x.X)
	case *syntax.BinaryArithm:
		return ofNumbers(x.X) && ofNumbers(x.Y)
	}
	return false
}

func (s *reader) statement(n *syntax.Stmt) {
	if n.Coprocess || n.Disown {
		s.cannot("it is of another shell")
	}
	if n.Cmd == nil && len(n.Redirs) > 0 {
		s.only(sh|mksh, "a redirection without a command")
	}
}

// call records a simple command with its words and the variables that it sets.
func (s *reader) call(n *syntax.CallExpr) {
	for _, a := range n.Assigns {
		s.assign(a, len(n.Args) > 0)
	}
	if len(n.Args) == 0 {
		return
	}
	cmd := &simple{}
	for _, a := range n.Args {
		cmd.words = append(cmd.words, literalWord(a))
	}
	s.command(cmd)
}

func (s *reader) cases(n *syntax.CaseClause) {
	if n.Braces || s.substituted() {
		s.cannot("shells read case differently there")
	}
}

func (s *reader) function(n *syntax.FuncDecl) {
	if n.RsrvWord {
		s.only(bash, "function")
	}
	if n.Name == nil || !isName(n.Name.Value) {
		s.cannot("it declares a function of another shell")
		return
	}
	switch n.Body.Cmd.(type) {
	case *syntax.Block, *syntax.Subshell:
	default:
		s.cannot("shells read its function differently")
	}
}

// timed: dash starts a program time, which takes the words as they are.
func (s *reader) timed(n *syntax.TimeClause) {
	if n.Stmt == nil {
		s.only(bash, "time alone")
		return
	}
	if n.PosixFormat {
		s.only(sh|mksh, "time -p")
	}
	call, ok := n.Stmt.Cmd.(*syntax.CallExpr)
	if !ok || n.Stmt.Negated || len(call.Assigns) > 0 || len(call.Args) == 0 || slices.Contains(ofTheShell, call.Args[0].Lit()) {
		s.only(bash, "time")
	}
}

// substitution: what stands between backquotes is read twice, and shells differ about how.
func (s *reader) substitution(n *syntax.CmdSubst) {
	if n.TempFile || n.ReplyVar {
		s.cannot("it is of another shell")
	}
	if n.Backquotes && !plainly().MatchString(strings.Trim(s.source(n), "`")) {
		s.cannot("it holds quotes or signs between backquotes")
	}
}

// plainly matches words and spaces that all shells read alike, wherever they stand.
var plainly = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9 _./:,@%+-]*$`) })

// plainExpansions only insert a variable or an alternative.
var plainExpansions = []syntax.ParExpOperator{
	syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.ErrorUnset, syntax.ErrorUnsetOrNull,
	syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix,
}

// parameter accepts $x, ${x}, ${#x}, and ${x:-word} and its like with a plain word.
func (s *reader) parameter(n *syntax.ParamExp) {
	odd := n.Flags != nil || n.Excl || n.Width || n.IsSet || n.Split != 0 || n.GlobSubst != 0 || n.RcExpand != 0 || n.NestedParam != nil ||
		n.Index != nil || n.Slice != nil || n.Repl != nil || n.Names != 0 || len(n.Modifiers) > 0 || n.Param == nil
	if odd || n.Exp != nil && (!slices.Contains(plainExpansions, n.Exp.Op) || !plainAlternative(n.Exp.Word)) {
		s.cannot("it puts in a variable in a way that may run commands or set it")
	}
}

// plainAlternative reports whether the word after ${x:- has no quotes, and nothing but plain variables in it.
func plainAlternative(w *syntax.Word) bool {
	if w == nil {
		return true
	}
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if !alternative().MatchString(p.Value) {
				return false
			}
		case *syntax.ParamExp:
			if p.Exp != nil {
				return false
			}
		default:
			return false
		}
	}
	return true
}

var alternative = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9 _./:,@%+*?-]*$`) })

// word reads the parts of a word, unless it is the body of a here-document, which is read with its redirection.
func (s *reader) word(w *syntax.Word) {
	if r, ok := s.parent().(*syntax.Redirect); ok && r.Hdoc == w {
		return
	}
	s.parts(w.Parts)
	text := ""
	if lit, ok := w.Parts[0].(*syntax.Lit); ok {
		text = lit.Value
	}
	if strings.HasPrefix(text, "=") {
		s.only(sh|mksh, "a word that begins with =")
	}
	if w.Lit() != "{}" && slices.ContainsFunc(w.Parts, isBraced) {
		s.only(sh|mksh, "braces")
		if expanded().MatchString(s.source(w)) {
			s.only(bash, "{…,…}")
		}
	}
}

func (s *reader) parent() syntax.Node {
	if len(s.in) == 0 {
		return nil
	}
	return s.in[len(s.in)-1]
}

// source returns the text of a node, "" for one that was broken off.
func (s *reader) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from > to || to > len(s.text) {
		return ""
	}
	return s.text[from:to]
}

func isBraced(part syntax.WordPart) bool {
	lit, ok := part.(*syntax.Lit)
	return ok && strings.ContainsAny(lit.Value, "{}")
}

// expanded matches braces that some shells expand.
var expanded = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)\{[^}]*(,|\.\.)`) })

// parts looks for what shells read differently between the parts of a word.
func (s *reader) parts(parts []syntax.WordPart) {
	for i, part := range parts {
		switch p := part.(type) {
		case *syntax.ExtGlob:
			s.cannot("it is of another shell")
		case *syntax.Lit:
			if at := bareDollar(p.Value); at >= 0 && (at < len(p.Value)-1 || i < len(parts)-1) {
				s.only(sh, "a lone $")
			}
		case *syntax.ParamExp:
			if i+1 < len(parts) && p.Short && p.Param != nil && subscribed(p.Param.Value, parts[i+1]) {
				s.only(sh|mksh, "what follows a variable")
			}
		}
	}
}

// bareDollar returns the place of a $ that puts nothing in, -1 if there is none.
func bareDollar(lit string) int {
	for i := 0; i < len(lit); i++ {
		switch lit[i] {
		case '\\':
			i++
		case '$':
			return i
		}
	}
	return -1
}

var subscript = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([\[(#]|:[A-Za-z&])`) })

// subscribed reports whether zsh takes a part for a subscript or a modifier of the variable before it.
func subscribed(variable string, part syntax.WordPart) bool {
	lit, ok := part.(*syntax.Lit)
	return ok && (subscript().MatchString(lit.Value) || variable == "#")
}
