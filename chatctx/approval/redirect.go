package approval

import (
	"path"
	"regexp"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// redirect records the file that a redirection opens. Here-documents and copies of descriptors open none.
func (s *reader) redirect(r *syntax.Redirect) {
	if r.N != nil && (len(r.N.Value) != 1 || !plainNumber(r.N.Value)) {
		s.cannot("shells read the number of its redirection differently")
	}
	w := literalWord(r.Word)
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		s.hereDocument(r)
	case syntax.WordHdoc:
		s.only(bash|mksh|zsh, "<<<")
	case syntax.DplIn, syntax.DplOut:
		if !w.literal || w.quoted || len(w.text) != 1 || w.text != "-" && !plainNumber(w.text) {
			s.cannot("shells read its redirection differently")
		}
	case syntax.RdrAll, syntax.AppAll:
		s.only(bash, r.Op.String())
		s.opens(r, w)
	case syntax.RdrIn, syntax.RdrOut, syntax.AppOut, syntax.RdrInOut, syntax.RdrClob:
		s.opens(r, w)
	default:
		s.cannot("it redirects as one shell or another does")
	}
}

// opens records a file. A name that begins with a sign is one thing to one shell and another to the next.
func (s *reader) opens(r *syntax.Redirect, w word) {
	source := s.source(r.Word)
	switch {
	case !fileBegins().MatchString(source):
		s.cannot("shells read its redirection differently")
	case r.Op == syntax.RdrIn && strings.IndexByte("0123456789-", source[0]) >= 0:
		s.only(sh|mksh, "<"+source)
	}
	clean := path.Clean(w.text)
	switch {
	case strings.HasPrefix(clean, "/dev/tcp") || strings.HasPrefix(clean, "/dev/udp"):
		s.cannot("it opens a connection")
	case w.literal && streams().MatchString(w.text):
	default:
		s.files = append(s.files, opened{w, r.Op != syntax.RdrIn})
	}
}

var (
	fileBegins = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^["'A-Za-z0-9_./$~*?-]`) })
	streams    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^/dev/(null|stdin|stdout|stderr|fd/[0-2])$`) })
)

// hereDocument finds the lines of a here-document by itself, as shells do, and the parser has to agree about them.
func (s *reader) hereDocument(r *syntax.Redirect) {
	mark := hereMark().FindStringSubmatch(s.source(r.Word))
	lines := strings.SplitAfter(s.text, "\n")
	at, behind := int(r.OpPos.Line())-1, int(r.Word.End().Offset())
	if mark == nil || at < 0 || at >= len(lines) || behind > len(s.text) {
		s.cannot("shells read the end of its here-document differently")
		return
	}
	name, quoted := strings.Trim(mark[0], `'"`), mark[1] == ""
	rest, _, _ := strings.Cut(s.text[behind:], "\n")
	begin := at + 1
	end, like := begin, false // mksh ends it at a line that goes on with )
	for ; end < len(lines) && hereLine(r, lines[end]) != name; end++ {
		like = like || strings.HasPrefix(strings.TrimLeft(lines[end], " \t"), name)
	}
	body := strings.Join(lines[min(begin, len(lines)):end], "")
	agreed := r.Hdoc == nil && body == "" || r.Hdoc != nil && int(r.Hdoc.Pos().Line()) == begin+1 && int(r.Hdoc.End().Line()) == end+1
	switch {
	case end == len(lines), !agreed, like:
		s.cannot("shells read the end of its here-document differently")
	case !afterMark().MatchString(rest), strings.Count(rest, `"`)%2 != 0, strings.Count(lines[at], "<<") > 1:
		s.cannot("shells may read the beginning of its here-document differently")
	case s.substituted() && !evenBody(body):
		s.cannot("some shells read on in a here-document in a substitution")
	case !quoted:
		s.filledBody(r, body)
	}
}

// hereMark matches the name that ends a here-document. It has a first group if it is not quoted.
var hereMark = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:([A-Za-z0-9_]+)|'[A-Za-z0-9_]+'|"[A-Za-z0-9_]+")$`)
})

// afterMark matches what may stand behind the name on its line: nothing that could go on in the next one.
var afterMark = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9 \t_./:,@%+=|&>;$"*~-]*$`) })

func hereLine(r *syntax.Redirect, line string) string {
	if r.Op == syntax.DashHdoc {
		line = strings.TrimLeft(line, "\t")
	}
	return strings.TrimSuffix(line, "\n")
}

// filledBody reads a here-document into which the shell puts variables and the output of commands.
func (s *reader) filledBody(r *syntax.Redirect, body string) {
	if strings.Contains(body, "\\\n") {
		s.cannot("shells join lines before they look for the end of a here-document")
	}
	if r.Hdoc == nil {
		return
	}
	for _, part := range r.Hdoc.Parts {
		if _, plain := part.(*syntax.Lit); !plain && part.Pos().Line() != part.End().Line() {
			s.cannot("what its here-document puts in goes over lines, and may hold its end")
		}
	}
	s.parts(r.Hdoc.Parts)
}

// evenBody reports whether a text in a substitution ends it for no shell: old ones count its quotes and parentheses.
func evenBody(body string) bool {
	depth := 0
	for _, c := range body {
		switch c {
		case '\'', '"', '`', '\\':
			return false
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return false
			}
		}
	}
	return depth == 0 && !(strings.Contains(body, "(") && strings.Contains(body, "#"))
}
