package operation

import (
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/quote"
	"github.com/chatctx/chatctx/internal/words"
	"github.com/chatctx/chatctx/pool"
)

func init() { Register(Group{Heading: "Other programs", Of: recallOperations}) }

// recallOperations are the tools of chatctx mcp. An agent that calls one reads its own folder's conversations, and each answer is a frame of quotations.
func recallOperations() []*Operation {
	return []*Operation{
		Define("recall.search", "GET", Read, "find passages of earlier conversations about this folder: questions, answers, commands and their output, and what was tried and dropped or denied", recallSearch).
			AsTool("search"),
		Define("recall.read", "GET", Read, "read an earlier conversation, from a message on; what search returned as at, or a cursor", recallRead).AsTool("read"),
		Define("recall.tree", "GET", Read, "list the branches of an earlier conversation: what was tried, what was dropped, and where each left", recallTree).AsTool("tree"),
		Define("recall.recent", "GET", Read, "list the last conversations about this folder", recallRecent),
		Define("recall.note", "POST", Write, "keep a note about this folder, which search finds in later conversations", recallNote).AsTool("note"),
	}
}

// Recalled is an answer to a model: a frame of quotations.
type Recalled struct {
	Text string `json:"text"`
}

// Bounds of an answer, in tokens, of which each counts as four bytes.
const (
	tokenBytes   = 4
	usualTokens  = 1000
	mostTokens   = 8000
	fewestTokens = 200
)

// frame returns an empty answer for a budget of tokens; 0 is the usual one.
func frame(tokens int) (*quote.Frame, error) {
	switch {
	case tokens == 0:
		tokens = usualTokens
	case tokens < fewestTokens || tokens > mostTokens:
		return nil, base.Invalid("tokens is %d, and has to be from %d to %d", tokens, fewestTokens, mostTokens)
	}
	return quote.New(tokens * tokenBytes), nil
}

// isRecallID reports whether a text can be an id, or a part of one. Titles name nothing here: an error about them would say which there are.
func isRecallID(s string) bool {
	return len(s) >= 8 && len(s) <= 36 && strings.Trim(s, "0123456789abcdef-") == ""
}

// recalled returns a conversation that the caller may read: of its folder, and not in the trash.
func (r *Request) recalled(ref string) (*chatctx.ChatContext, *record.ContextInfo, error) {
	none := base.Says(base.ErrNotFound, "no conversation of this folder has that id: use at from search")
	if !isRecallID(ref) {
		return nil, nil, none
	}
	c, err := r.Store.Context(r.Ctx, ref)
	if err != nil {
		return nil, nil, none
	}
	c, err = c.Settled(r.Ctx)
	if err != nil {
		return nil, nil, err
	}
	info, err := c.Info(r.Ctx)
	if err != nil {
		return nil, nil, err
	}
	if info.Trashed != 0 {
		return nil, nil, none
	}
	if r.Folders == nil {
		return c, info, nil
	}
	in := false
	err = base.Of(r.Store).DB.View(r.Ctx, func(tx kv.Tx) error {
		rec, _, err := base.GetContext(tx, c.ID)
		if err == nil && rec != nil {
			in, err = base.InFolder(tx, rec, r.Folders)
		}
		return err
	})
	if err == nil && !in {
		err = none
	}
	return c, info, err
}

// place names a message of a conversation, as search prints it and read takes it: CONVERSATION/MESSAGE.
func placeOf(c, m chatctx.ID) string { return record.Short(c) + "/" + record.Short(m) }

// day writes a time for a frame, "" for none.
func day(t pool.Time) string {
	if t == 0 {
		return ""
	}
	return ", " + t.Time().UTC().Format(time.DateOnly)
}

// textFor returns what a message says, clean: its texts, its calls, and the results of tools. What a model thought is no part of it.
func textFor(m *pool.Message) string {
	var out []string
	add := func(text string) {
		if strings.TrimSpace(text) != "" {
			out = append(out, text)
		}
	}
	parts := func(list []pool.Part) {
		for i := range list {
			if list[i].Type == pool.TextPart {
				add(list[i].Text)
			}
		}
	}
	parts(m.Content)
	for i := range m.Calls {
		c := &m.Calls[i]
		add(c.Tool + " " + string(jsontree.Canonical(c.Arguments)))
	}
	if res := m.Result; res != nil {
		add(res.Text)
		add(string(res.JSON))
		parts(res.Parts)
	}
	return quote.Clean(strings.Join(out, "\n\n"))
}

// mayShow reports whether a message is for agents: not hidden, excluded by a person, or redacted.
func mayShow(m *pool.Message, marks map[chatctx.ID]string, text string) bool {
	return !m.Hidden && marks[m.ID] != enhancer.Excluded && !strings.Contains(text, chatctx.RedactedMark)
}

// sayCalls says what became of a message and its calls, where that is not plain.
func sayCalls(f *quote.Frame, m *pool.Message) {
	for i := range m.Calls {
		switch c := &m.Calls[i]; {
		case c.Status == pool.Denied && c.Reason != "":
			f.Name("denied, because", c.Reason)
		case c.Status == pool.Denied:
			f.Say("the call was denied")
		case c.Status == pool.Pending:
			f.Say("the call was never decided")
		case c.Execution == pool.Failed:
			f.Say("the call failed")
		}
	}
	if m.Unfinished {
		f.Say("the answer broke off")
	}
	if m.Result != nil && m.Result.IsError {
		f.Say("it failed")
	}
}

// RecallSearch is a question.
type RecallSearch struct {
	Query  string `json:"query" doc:"what to look for: a question, or words that the passage may have, in the language in which people spoke then; exact names, commands and error messages find most"`
	Limit  int    `json:"limit,omitempty" doc:"the most passages, up to 20; 5 without it"`
	Tokens int    `json:"tokens,omitempty" doc:"about how long the answer may be, from 200 to 8000 tokens; 1000 without it"`
}

// Bounds of the passages of a search: how many it shows, how many it looks at, and the fewest bytes of one.
const (
	usualPassages = 5
	mostPassages  = 20
	mostLooked    = 200
	leastPassage  = 260
)

func recallSearch(r *Request, in *RecallSearch) (out Recalled, err error) {
	f, err := frame(in.Tokens)
	if err != nil {
		return out, err
	}
	if in.Limit < 0 || in.Limit > mostPassages {
		return out, base.Invalid("limit is %d, and has to be from 1 to %d", in.Limit, mostPassages)
	}
	s := &recallSearcher{r: r, f: f, left: in.Limit, clues: words.Clues(in.Query), shown: map[string]bool{}, in: map[chatctx.ID]*recallContext{}}
	if s.left == 0 {
		s.left = usualPassages
	}
	o := record.SearchOptions{Text: in.Query, Any: true, Folders: r.Folders, Unheld: true, Limit: mostLooked}
	for h, err := range r.Store.Search(r.Ctx, o) {
		if err == nil {
			err = s.show(h)
		}
		if err != nil {
			return out, err
		}
		if s.left == 0 || f.Left() < leastPassage {
			break
		}
	}
	if len(s.shown) == 0 {
		f.Say("nothing found: try other words, names or an error message; conversations that were not imported are not known")
	}
	return Recalled{f.String()}, nil
}

// recallSearcher writes the hits of a search into a frame.
type recallSearcher struct {
	r     *Request
	f     *quote.Frame
	left  int
	clues []words.Phrase
	shown map[string]bool // the passages
	in    map[chatctx.ID]*recallContext
}

// recallContext is what a search knows of a conversation.
type recallContext struct {
	c     *chatctx.ChatContext
	info  *record.ContextInfo
	marks map[chatctx.ID]string
}

func (s *recallSearcher) context(id chatctx.ID) (*recallContext, error) {
	if known := s.in[id]; known != nil {
		return known, nil
	}
	c, err := s.r.Store.Context(s.r.Ctx, id.String())
	if err != nil {
		return nil, err
	}
	one := &recallContext{c: c}
	if one.info, err = c.Info(s.r.Ctx); err == nil {
		one.marks, err = c.Marks(s.r.Ctx)
	}
	s.in[id] = one
	return one, err
}

// show writes a hit, unless it may not be shown or was shown already.
func (s *recallSearcher) show(h *record.Hit) error {
	if h.Message == nil {
		return nil // titles and prompts only help to rank
	}
	in, err := s.context(h.Context)
	if err != nil {
		return err
	}
	text := textFor(h.Message)
	passage := s.passage(text)
	if passage == "" || s.shown[passage] || !mayShow(h.Message, in.marks, text) {
		return nil
	}
	m, err := in.c.Message(s.r.Ctx, h.Message.ID) // with its calls' present state
	if err != nil {
		return err
	}
	s.shown[passage] = true
	f, room := s.f, s.f.Left()/s.left
	s.left--
	before := f.Left()
	f.Say("\n%d. at %s, %s%s", len(s.shown), placeOf(h.Context, m.ID), roleWord(m), day(m.Created))
	f.Name("title", in.info.Title)
	switch held := slices.ContainsFunc(h.Branches, func(b record.HitBranch) bool { return b.Name == in.info.Active }); {
	case len(h.Branches) == 0:
		f.Say("tried, and taken back: no branch has it any more")
	case !held:
		f.Say("tried on a branch, and dropped: the conversation went on without it")
		f.Name("branch", h.Branches[0].Name)
	}
	sayCalls(f, m)
	room -= before - f.Left()
	f.Text(passage, max(min(room, len(passage)+len(passage)/4+8), 80))
	return nil
}

// roleWord returns the role of a message, one of the four words that there are.
func roleWord(m *pool.Message) string {
	switch m.Role {
	case pool.System, pool.User, pool.Assistant, pool.ToolRole:
		return string(m.Role)
	}
	return "message"
}

// mostPassage is the longest passage of a search, in bytes.
const mostPassage = 700

// passage returns the part of a clean text that fits the clues best, with what stands around it; "" if no clue is in it.
func (s *recallSearcher) passage(text string) string {
	weights := make([]float64, len(s.clues))
	for i, c := range s.clues {
		weights[i] = float64(min(len(strings.Join(c.Words, "")), 12)) // a longer word mostly says more
	}
	at, weight := words.NewPassages(s.clues, weights).Best(text, make([]bool, len(s.clues)))
	if weight == 0 {
		return ""
	}
	from := max(0, at.From-max(mostPassage-(at.To-at.From), 0)/3)
	if from > 0 {
		if i := strings.IndexAny(text[from:at.From], " \n\t"); i >= 0 {
			from += i + 1
		} else {
			from = at.From
		}
	}
	return strings.TrimRight(quote.Cut(text[from:], mostPassage), " \n")
}
