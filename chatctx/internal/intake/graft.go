package intake

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/settings"
	"github.com/chatctx/chatctx/pool"
)

// Incoming is one conversation on its way in, as a tree. Nodes stand after their parents.
type Incoming struct {
	// Format, Conversation and a node's id are the key by which a message is known again. Without a Conversation nothing is.
	Format, Conversation string
	Title                string
	Derived              bool // the title was made from a message
	Created, Updated     pool.Time
	Settings             map[string]json.RawMessage
	System, Prompt       string
	AppData              map[string]json.RawMessage
	Labels               []string    // they follow the file as its title does; what somebody took off or put on here stays so
	Parent               *SourceLink // of a sub-context: the conversation that it belongs to
	Follows              string      // of one without Parent: the id of the message that it goes on from, in a conversation of this format that is not named
	Nodes                []Node
	Branches             []IncomingBranch // the active one first
	Tags                 map[string]int   // names of nodes, by their numbers, counted from 1
	Loose                []*pool.Message  // summaries of sessions: in the pool, on no branch
	// Digest is of the record in the file that the conversation was made of; zero: not known. Unchanged knows it again by that.
	Digest pool.Hash
	// Contents has what the messages of Nodes say, where that is too much to be in memory; nil: they are whole.
	Contents Contents

	ahead    *NativeImport // with the messages that are stored already
	prepared bool          // by Ready
	stored   bool          // by Import
	print    pool.Hash     // the fingerprint of what the file says, by Ready
	words    []pool.Hash
}

// Contents keeps what messages say until they are stored. It is asked from several goroutines.
type Contents interface {
	// Has tells whether it keeps what a message says; else the message is whole.
	Has(m *pool.Message) bool
	// Get gives a message whole; m is left as it is.
	Get(m *pool.Message) (*pool.Message, error)
	// Put keeps the message that Get gave for m and that was changed since.
	Put(m, whole *pool.Message) error
}

// whole is the message of a node with all that it says.
func (in *Incoming) whole(i int) (*pool.Message, error) {
	if in.Contents == nil {
		return in.Nodes[i].Message, nil
	}
	m, err := in.Contents.Get(in.Nodes[i].Message)
	if err != nil {
		err = fmt.Errorf("what a message of %q says cannot be read back: %w", in.Title, err)
	}
	return m, err
}

// Node is a message of the tree. Parent is the number of the node above it, counted from 1; 0 for a root.
type Node struct {
	ID      string
	Parent  int
	Message *pool.Message
	// Further: in the file it is no message of its own, but a part of the one before it, or a text beside the messages. It is not counted.
	Further bool
	// CopyOf is the message of another conversation of this format that this one repeats. Where that is known the copy is linked to it and
	// counted as known.
	CopyOf NodeLink
}

// NodeLink names an imported message; the zero one none.
type NodeLink struct{ Conversation, Node string }

// IncomingBranch ends at the node Leaf, a number counted from 1; 0 for an empty one.
type IncomingBranch struct {
	Name           string
	Leaf           int
	System, Prompt string // "": the conversation's
	Settings       map[string]json.RawMessage
	Sessions       []branch.Session // a Summary there is the id of a message in Loose, or of a node's
}

// SourceLink names an imported conversation.
type SourceLink struct{ Format, Conversation string }

// Imported says what became of an Incoming.
type Imported struct {
	Context     pool.ID
	Title       string
	Created     bool // the context is new
	Restored    bool // it was in the trash
	Messages    int  // added, as many as they are in the file
	Known       int  // were there already, or are copies of messages of other conversations that were
	Branches    int  // in the context afterwards
	NewBranches int
	// Changed are messages that were there already and say something else in this file, and ChangedOn the new branches that have them.
	Changed   int
	ChangedOn []string
	// More are messages that were there already and beside which this file has more than was taken, by their ids in the file: the first ten.
	More      []string
	MoreCount int
}

const mostNamed = 10

func (i *Imported) more(id string) {
	if i.MoreCount++; len(i.More) < mostNamed {
		i.More = append(i.More, id)
	}
}

// fingerprint changes when a conversation has another title, data, nodes or branches, or a message of it says something else. It notes what the
// messages say, before an embedder's hook changes them.
func (in *Incoming) fingerprint() (pool.Hash, error) {
	h := sha256.New()
	in.words = make([]pool.Hash, len(in.Nodes))
	b := fmt.Appendf(nil, "%q %t %q\n", in.Title, in.Derived, in.Labels)
	for _, k := range slices.Sorted(maps.Keys(in.AppData)) {
		b = fmt.Appendf(b, "%q %d\n", k, len(in.AppData[k]))
		b = append(b, in.AppData[k]...)
	}
	for i, n := range in.Nodes {
		m, err := in.whole(i)
		if err != nil {
			return pool.Hash{}, err
		}
		in.words[i] = m.Words()
		for _, raw := range beside(m) {
			h.Write(raw)
		}
		b = binary.AppendUvarint(append(b, in.words[i][:]...), uint64(n.Parent))
		b = append(binary.AppendUvarint(b, uint64(len(n.ID))), n.ID...)
		if len(b) > 1<<16 {
			h.Write(b)
			b = b[:0]
		}
	}
	for _, br := range in.Branches {
		b = fmt.Appendf(b, "%q %d\n", br.Name, br.Leaf)
	}
	h.Write(b)
	return pool.Hash(h.Sum(nil)), nil
}

// dated is how old the file's state of the conversation is: the newest time in it.
func (in *Incoming) dated() pool.Time {
	at := in.Updated
	for _, n := range in.Nodes {
		at = max(at, n.Message.Created)
	}
	return at
}

// ready checks a conversation's shape and prepares its messages. Nothing imported waits for a decision.
func (in *Incoming) ready(s *record.Store) error {
	for i, n := range in.Nodes {
		if n.Message == nil || n.Parent > i || n.Parent < 0 {
			return record.Invalidf("node %d of conversation %q has no message, or a parent that does not stand before it", i+1, in.Conversation)
		}
	}
	for name, n := range in.Tags {
		if n < 1 || n > len(in.Nodes) || branch.CheckName(name) != nil {
			return record.Invalidf("the tag %q of conversation %q is for node %d of %d", name, in.Conversation, n, len(in.Nodes))
		}
	}
	for _, b := range in.Branches {
		if b.Leaf < 0 || b.Leaf > len(in.Nodes) {
			return record.Invalidf("branch %q of conversation %q ends at node %d of %d", b.Name, in.Conversation, b.Leaf, len(in.Nodes))
		}
	}
	if len(in.Branches) == 0 {
		return record.Invalidf("conversation %q has no branch", in.Conversation)
	}
	var err error
	if in.print, err = in.fingerprint(); err != nil {
		return err
	}
	if err := in.texts(s); err != nil {
		return fmt.Errorf("conversation %q: %w", in.Conversation, err)
	}
	ids := map[pool.ID]bool{}
	for i, n := range in.Nodes {
		m, err := in.whole(i)
		if err != nil {
			return err
		}
		if err := in.readyMessage(s, m, ids); err != nil {
			return err
		}
		if m != n.Message {
			if err := in.Contents.Put(n.Message, m); err != nil {
				return err
			}
		}
	}
	for _, m := range in.Loose {
		if err := in.readyMessage(s, m, ids); err != nil {
			return err
		}
	}
	return nil
}

// readyMessage prepares one message. ids are those of the messages before it.
func (in *Incoming) readyMessage(s *record.Store, m *pool.Message, ids map[pool.ID]bool) error {
	if m == nil {
		return record.Invalidf("a message of conversation %q is nil", in.Conversation)
	}
	if m.ID != (pool.ID{}) && ids[m.ID] {
		return record.Invalidf("two messages of conversation %q have the id %s", in.Conversation, m.ID)
	}
	unknown := m.Created == 0
	if err := s.Fit([]*pool.Message{m}); err != nil {
		return fmt.Errorf("conversation %q: %w", in.Conversation, err)
	}
	ids[m.ID] = true
	if unknown {
		m.Created = 0
	}
	for i := range m.Calls {
		if c := &m.Calls[i]; c.Open() {
			c.Status, c.Execution, c.Reason = pool.Denied, pool.NotRun, noResult
		}
	}
	return nil
}

// texts passes what a conversation has beside its messages through the embedder's hook.
func (in *Incoming) texts(s *record.Store) error {
	if err := s.Texts("title", &in.Title); err != nil {
		return err
	}
	if err := s.Texts("prompt", &in.System, &in.Prompt); err != nil {
		return err
	}
	if err := s.Values("setting", &in.Settings); err != nil {
		return err
	}
	in.Settings, _ = settings.Hold(in.Settings)
	if err := s.Values("data", &in.AppData); err != nil {
		return err
	}
	for i := range in.Branches {
		b := &in.Branches[i]
		if err := branchTexts(s, &b.System, &b.Prompt, &b.Settings, &b.Sessions); err != nil {
			return err
		}
	}
	return nil
}

// branchTexts passes the texts of a branch on its way in.
func branchTexts(s *record.Store, system, prompt *string, set *map[string]json.RawMessage, sessions *[]branch.Session) error {
	if err := s.Texts("prompt", system, prompt); err != nil {
		return err
	}
	if err := s.Values("setting", set); err != nil {
		return err
	}
	*set, _ = settings.Hold(*set)
	var err error
	*sessions, err = s.Sessions(*sessions)
	return err
}

// ImportRun makes the imports of one command, which one undo takes back.
type ImportRun struct {
	store *record.Store
	group uint64
	files []ImportedFile           // to be noted
	made  map[pool.ID]bool         // the contexts that came in by their ids, and
	tasks map[pool.ID]*record.Task // what those are for that are sub-contexts
	// spans of the contexts that were there when the first one came by its ids, and of those that came so since.
	spans   map[pool.ID]span
	renamed map[pool.ID]map[pool.ID]pool.ID // what messages of a context that came in are called here, where it is something else
}

// NewImportRun begins the imports of one command.
func NewImportRun(s *record.Store) *ImportRun { return &ImportRun{store: s} }

// Import stores conversations in one transaction. See ImportRun for several.
func Import(ctx context.Context, s *record.Store, in []*Incoming) ([]Imported, error) {
	return NewImportRun(s).Import(ctx, in)
}

// Import stores conversations in one transaction, or in as many as one of them comes again; new ones are one operation of the store. A known conversation gets what is new: nodes that are not there yet, and
// branches that no branch holds, as an operation of its own. Its messages are changed: they get ids.
func (r *ImportRun) Import(ctx context.Context, in []*Incoming) ([]Imported, error) {
	for _, c := range in {
		if err := r.Ready(c); err != nil {
			return nil, err
		}
	}
	out := make([]Imported, len(in))
	all := largeAlone(in, rounds(in, linkedFirst(in)))
	for n, round := range all {
		if len(round) == 1 {
			if err := r.storeAhead(ctx, in[round[0]]); err != nil {
				return out, err
			}
		}
		err := r.update(ctx, func(st *journal.StoreTxn) (err error) {
			for _, i := range round {
				if out[i], err = importOne(st, in[i]); err != nil {
					return err
				}
			}
			for i := 0; n == len(all)-1 && i < len(r.files); i++ {
				if err := noteFile(st, &r.files[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return out, err
		}
	}
	r.files = nil
	for _, c := range in {
		c.stored = true
	}
	return out, nil
}

// Ready checks a conversation and prepares its messages, once. Import does it too; it needs no transaction, so another goroutine can do
// it before.
func (r *ImportRun) Ready(in *Incoming) error {
	if in == nil {
		return record.Invalidf("a conversation is nil")
	}
	if in.prepared {
		return nil
	}
	err := in.ready(r.store)
	in.prepared = err == nil
	return err
}

// rounds cuts an order into parts that have each conversation once: what is new in a transaction is complete only after it.
func rounds(in []*Incoming, order []int) [][]int {
	seen := make(map[SourceLink]int, len(in))
	out := [][]int{nil}
	for _, i := range order {
		l := SourceLink{in[i].Format, in[i].Conversation}
		n := seen[l]
		if l.Conversation != "" {
			seen[l]++
		}
		if n == len(out) {
			out = append(out, nil)
		}
		out[n] = append(out[n], i)
	}
	return out
}

// linkedFirst gives the order in which conversations are stored: those that others belong to, or are copies of, before these.
func linkedFirst(in []*Incoming) []int {
	index := make(map[SourceLink]int, len(in))
	for i, c := range in {
		index[SourceLink{c.Format, c.Conversation}] = i
	}
	order := make([]int, 0, len(in))
	begun := make([]bool, len(in)) // so that a circle ends
	type frame struct {
		at    int
		links []SourceLink
	}
	for i := range in {
		var path []frame
		enter := func(i int) {
			if !begun[i] {
				begun[i] = true
				path = append(path, frame{i, in[i].links()})
			}
		}
		for enter(i); len(path) > 0; {
			top := &path[len(path)-1]
			if len(top.links) == 0 {
				order = append(order, top.at)
				path = path[:len(path)-1]
				continue
			}
			l := top.links[0]
			top.links = top.links[1:]
			if j, ok := index[l]; ok {
				enter(j)
			}
		}
	}
	return order
}

// links are the conversations that this one names, each once where they follow one another.
func (in *Incoming) links() []SourceLink {
	var out []SourceLink
	if in.Parent != nil {
		out = append(out, *in.Parent)
	}
	for _, n := range in.Nodes {
		l := SourceLink{in.Format, n.CopyOf.Conversation}
		if l.Conversation != "" && (len(out) == 0 || out[len(out)-1] != l) {
			out = append(out, l)
		}
	}
	return out
}

// update makes one operation of the run.
func (r *ImportRun) update(ctx context.Context, fn func(*journal.StoreTxn) error) error {
	var group uint64
	err := r.store.DB.Update(ctx, func(tx kv.RwTx) error {
		st, err := journal.BeginStore(r.store, tx)
		if err != nil {
			return err
		}
		if st.Group = r.group; st.Group == 0 {
			st.Group = max(st.Rec.NextOperation, 1)
		}
		group = st.Group
		if err := fn(st); err != nil {
			return err
		}
		_, err = st.Finish("import")
		return err
	})
	if err == nil {
		r.group = group
	}
	return err
}

// importOne adds a conversation, or to a known one what is new.
func importOne(st *journal.StoreTxn, in *Incoming) (Imported, error) {
	key := record.SourceKey(in.Format, in.Conversation, "")
	var src record.SourceRecord
	known := false
	if in.Conversation != "" {
		var err error
		if known, err = record.GetRecord(st.Tx, record.SourceBucket, key, &src); err != nil {
			return Imported{}, err
		}
	}
	if known {
		rec, _, err := record.GetContext(st.Tx, src.Context)
		if err != nil {
			return Imported{}, err
		}
		if rec != nil {
			return importMore(st, in, key, src)
		}
	}
	return importNew(st, in, key)
}

func importNew(st *journal.StoreTxn, in *Incoming, key []byte) (Imported, error) {
	if in.stored { // its messages have their ids in another context
		return Imported{}, record.Invalidf("conversation %q was imported already: read it anew to import it once more", in.Title)
	}
	if in.ahead != nil {
		return in.ahead.finishIncoming(st, in, key)
	}
	id := pool.NewID()
	t, err := st.NewContext(id, in.Title, pool.ID{}, in.Settings)
	if err != nil {
		return Imported{}, err
	}
	t.Rec.Derived, t.Rec.AppData = in.Derived, in.AppData
	if t.Rec.Labels, err = record.WithLabels(nil, in.Labels...); err != nil {
		return Imported{}, err
	}
	if in.Created != 0 {
		t.Rec.Created = in.Created
	}
	if err := linkAll(st, t, in); err != nil {
		return Imported{}, err
	}
	res := Imported{Context: id, Created: true}
	for i := range in.Nodes {
		if err := linkCopy(st, in, id, &in.Nodes[i]); err != nil {
			return res, err
		}
		res.count(&in.Nodes[i])
	}
	g := &graft{t: t, in: in, home: make([]pool.Home, len(in.Nodes))}
	if err := g.loose(); err != nil {
		return res, err
	}
	for i := range in.Branches {
		if _, err := g.newBranch(i, i == 0); err != nil {
			return res, err
		}
	}
	if err := dropUnusedMain(t, in); err != nil {
		return res, err
	}
	if err := g.tags(); err != nil {
		return res, err
	}
	first, err := t.Branch(in.Branches[0].Name)
	if err != nil {
		return res, err
	}
	t.Rec.Active = first.ID
	t.DeriveTitle(nodeMessages(in))
	res.Title, res.Branches, res.NewBranches = t.Rec.Title, int(t.Rec.Branches), len(in.Branches)
	if err := writeSources(st, in, key, record.SourceRecord{Context: id, Dated: in.dated(), About: in.about(), Labels: in.Labels}, nil); err != nil {
		return res, err
	}
	if err := t.PutBranches(); err != nil {
		return res, err
	}
	if in.Updated != 0 && in.Updated < t.Now { // a time that is still to come would keep it in front of what changes now
		t.Now = in.Updated
	}
	if err := takeIn(st, in, id); err != nil {
		return res, err
	}
	err = st.Made(t, false)
	return res, err
}

// takeIn makes the links that others have to a conversation.
func takeIn(st *journal.StoreTxn, in *Incoming, id pool.ID) error {
	if err := adopt(st, SourceLink{in.Format, in.Conversation}, id); err != nil {
		return err
	}
	if err := adoptFollowers(st, in, id); err != nil {
		return err
	}
	return linkCopies(st, in)
}

// count counts a node that is added.
func (res *Imported) count(n *Node) {
	switch {
	case n.Further:
	case n.Message.CopiedFrom != nil:
		res.Known++
	default:
		res.Messages++
	}
}

// dropUnusedMain forgets the branch that every context begins with where the conversation has none of that name.
func dropUnusedMain(t *journal.Txn, in *Incoming) error {
	for _, b := range in.Branches {
		if b.Name == record.MainBranch {
			return nil
		}
	}
	return t.Unmake(t.Target)
}

func nodeMessages(in *Incoming) []*pool.Message {
	out := make([]*pool.Message, len(in.Nodes))
	for i, n := range in.Nodes {
		out[i] = n.Message
	}
	return out
}

// writeSources notes a conversation and its nodes as known. To undo a new context is to forget the conversation: its nodes mean nothing without it. t is nil for
// a new one, else the operation that adds to a known one.
func writeSources(st *journal.StoreTxn, in *Incoming, key []byte, src record.SourceRecord, t *journal.Txn) error {
	if in.Conversation == "" {
		return nil
	}
	src.Fingerprint, src.Digest = in.print, in.Digest
	raw, err := record.EncodeRecord(src)
	if err != nil {
		return err
	}
	if t != nil {
		return t.PutRaw(record.SourceBucket, key, raw)
	}
	old, err := st.Tx.Get(record.SourceBucket, key)
	if err != nil {
		return err
	}
	st.Changes = append(st.Changes, record.Change{Kind: record.RecordChange, Bucket: record.SourceBucket, Key: key, Old: bytes.Clone(old)})
	if err := st.Tx.Put(record.SourceBucket, key, raw); err != nil {
		return err
	}
	for i, n := range in.Nodes {
		if n.ID == "" || in.ahead != nil {
			continue
		}
		if err := st.Tx.Put(record.SourceBucket, in.nodeKey(i), sourceNode(src.Context, n.Message.ID, in.words[i]).Value()); err != nil {
			return err
		}
	}
	return nil
}

// graft puts the nodes of a tree into a context, each at the first branch that holds it.
type graft struct {
	t    *journal.Txn
	in   *Incoming
	home []pool.Home // where each node stands; zero: not yet stored
	// twins are nodes that hold the same message, by its id; nil where there are none.
	twins map[pool.ID][]int
	// stored are the ids by which messages are stored that have others in a conversation that comes again; nil for a new one.
	stored map[pool.ID]pool.ID
	// replaced are stored messages that have grown since, with the nodes that take their places.
	replaced map[pool.ID]int
	// changed are the nodes that say something else than what was imported of them before.
	changed map[int]bool
}

func (g *graft) loose() error {
	for _, m := range g.in.Loose {
		if err := g.t.Store1(m); err != nil {
			return err
		}
	}
	return nil
}

// path gives the nodes from the root to a leaf.
func (g *graft) path(leaf int) []int {
	var out []int
	for n := leaf; n > 0; n = g.in.Nodes[n-1].Parent {
		out = append(out, n-1)
	}
	slices.Reverse(out)
	return out
}

// pieces stores those nodes of a path that are not stored yet, in the branch's segment, and gives the history.
func (g *graft) pieces(b *branch.Branch, path []int) ([]branch.Piece, error) {
	var out []branch.Piece
	for i := 0; i < len(path); {
		if err := g.there(path[i]); err != nil {
			return nil, err
		}
		if h := g.home[path[i]]; h.Segment != 0 {
			out = branch.Join(out, branch.Piece{Segment: h.Segment, From: h.Position, To: h.Position + 1})
			i++
			continue
		}
		j := i
		var msgs []*pool.Message
		for ; j < len(path); j++ {
			if err := g.there(path[j]); err != nil {
				return nil, err
			}
			if g.home[path[j]].Segment != 0 {
				break
			}
			m, err := g.in.whole(path[j])
			if err != nil {
				return nil, err
			}
			msgs = append(msgs, m)
		}
		p, err := g.t.Put(b, msgs)
		if err != nil {
			return nil, err
		}
		for k := i; k < j; k++ {
			m := msgs[k-i]
			g.home[path[k]] = m.Home
			for _, twin := range g.twins[m.ID] {
				g.home[twin] = m.Home
			}
		}
		out = branch.Join(out, p)
		i = j
	}
	return out, nil
}

// there notes where the message of a node stands that the context has already under that id.
func (g *graft) there(node int) error {
	if g.home[node].Segment != 0 {
		return nil
	}
	has, err := pool.Has(g.t.Tx, g.t.ID, g.in.Nodes[node].Message.ID)
	if err != nil || !has {
		return err
	}
	m, err := g.in.whole(node)
	if err != nil {
		return err
	}
	was, err := g.t.Stored(m)
	if was != nil {
		g.home[node] = was.Home
	}
	return err
}

// newBranch makes the branch i of a conversation, and gives its name. The first one of a new context takes the place of main where it has that name.
func (g *graft) newBranch(i int, first bool) (string, error) {
	want := g.in.Branches[i]
	b, err := g.takeName(want.Name, first)
	if err != nil {
		return "", err
	}
	pieces, err := g.pieces(b, g.path(want.Leaf))
	if err != nil {
		return "", err
	}
	if err := g.t.Splice(b, 0, 0, pieces); err != nil {
		return "", err
	}
	if b.Sessions, err = g.sessions(want.Sessions, 0); err != nil {
		return "", err
	}
	if b.Settings, _, err = view.MergeValues(nil, want.Settings); err != nil {
		return "", err
	}
	if b.System, err = g.prompt(want.System, g.in.System); err != nil {
		return "", err
	}
	b.Prompt, err = g.prompt(want.Prompt, g.in.Prompt)
	return b.Name, err
}

func (g *graft) prompt(own, all string) (string, error) {
	if own == "" {
		own = all
	}
	return g.t.PutPrompt(own)
}

func (g *graft) takeName(name string, first bool) (*branch.Branch, error) {
	if first && name == record.MainBranch {
		return g.t.Target, nil
	}
	id, err := branch.Lookup(g.t.Tx, g.t.ID, name)
	if err != nil {
		return nil, err
	}
	if id != (pool.ID{}) {
		if name, err = g.t.FreeName(name); err != nil {
			return nil, err
		}
	}
	return g.t.Create(name, nil)
}

// importMore adds to a known conversation what it does not have yet.
func importMore(st *journal.StoreTxn, in *Incoming, key []byte, src record.SourceRecord) (Imported, error) {
	res := Imported{Context: src.Context}
	t, err := journal.BeginAt(st.Store, st.Tx, src.Context)
	if err != nil {
		return res, err
	}
	t.What = "import"
	res.Title, res.Branches, res.Restored = t.Rec.Title, int(t.Rec.Branches), t.Rec.Trashed != 0
	if res.Restored {
		if err := bringBack(st, t); err != nil {
			return res, err
		}
	}
	if src.Fingerprint == in.print {
		for _, n := range in.Nodes {
			if !n.Further {
				res.Known++
			}
		}
		return res, nil
	}
	g := &graft{t: t, in: in, home: make([]pool.Home, len(in.Nodes)), stored: map[pool.ID]pool.ID{}, replaced: map[pool.ID]int{}, changed: map[int]bool{}}
	if err := g.relabel(&src); err != nil {
		return res, err
	}
	g.retitle(&src)
	if err := linkAll(st, t, in); err != nil {
		return res, err
	}
	if err := g.known(st, &res); err != nil {
		return res, err
	}
	if err := g.answered(); err != nil {
		return res, err
	}
	if err := g.replace(); err != nil {
		return res, err
	}
	if err := g.extend(&res); err != nil {
		return res, err
	}
	if err := g.tags(); err != nil {
		return res, err
	}
	res.Title, res.Branches = t.Rec.Title, int(t.Rec.Branches)
	t.OnContext = t.OnContext || res.Messages > 0 || res.NewBranches > 0 // so that undo finds it, whatever branch it is asked for
	if err := writeSources(st, in, key, src, t); err != nil {
		return res, err
	}
	if err := takeIn(st, in, t.ID); err != nil {
		return res, err
	}
	_, err = t.Finish()
	return res, err
}

// bringBack takes a context out of the trash before it is added to.
func bringBack(st *journal.StoreTxn, t *journal.Txn) error {
	if err := st.Trash(t, 0); err != nil {
		return err
	}
	if err := t.WriteContext(); err != nil {
		return err
	}
	raw, err := pool.Marshal(t.Rec)
	t.RecRaw = raw
	return err
}

// extend brings each branch of the conversation into the context: nothing where a branch holds it already, the rest where a branch ends inside it, else a new branch.
func (g *graft) extend(res *Imported) error {
	for i, want := range g.in.Branches {
		path := g.path(want.Leaf)
		b, err := g.longest(path)
		if err != nil {
			return err
		}
		if b.Branch != nil && b.same == len(path) {
			continue
		}
		if b.Branch == nil {
			name, err := g.newBranch(i, false)
			if err != nil {
				return err
			}
			res.NewBranches++
			if slices.ContainsFunc(path, func(n int) bool { return g.changed[n] }) {
				res.ChangedOn = append(res.ChangedOn, name)
			}
			continue
		}
		pieces, err := g.pieces(b.Branch, path[b.same:])
		if err != nil {
			return err
		}
		if err := g.t.Splice(b.Branch, b.same, 0, pieces); err != nil {
			return err
		}
		last := 0
		if n := len(b.Sessions); n > 0 {
			last = b.Sessions[n-1].Start
		}
		more, err := g.sessions(want.Sessions, last)
		if err != nil {
			return err
		}
		b.Sessions = append(b.Sessions, more...)
	}
	return nil
}

// sessions are those of want that begin after a position, with the ids by which their summaries are stored.
func (g *graft) sessions(want []branch.Session, after int) ([]branch.Session, error) {
	var out []branch.Session
	for _, s := range want {
		if s.Start <= after {
			continue
		}
		id, ok := g.stored[s.Summary]
		if ok {
			s.Summary = id
		}
		for _, m := range g.in.Loose {
			if m.ID == s.Summary && g.stored != nil && !ok {
				if err := g.t.StoreLoose(m); err != nil {
					return nil, err
				}
				g.stored[m.ID] = m.ID
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// longest finds the branch to extend by a path: one that holds all of it, else the longest that ends inside it and is not empty. A fork that was made here is
// somebody's own and is not changed.
func (g *graft) longest(path []int) (held, error) {
	var best held
	all, err := g.branches()
	if err != nil {
		return best, err
	}
	for _, b := range all {
		ids, err := branch.IDs(g.t.Tx, g.t.ID, b.Pieces)
		if err != nil {
			return best, err
		}
		h := held{b, g.same(ids, path)}
		switch {
		case h.same == len(path):
			return h, nil
		case h.same == len(ids) && h.same > best.same && b.From == (pool.ID{}):
			best = h
		}
	}
	return best, nil
}

// branches are all branches by name, those of this operation included, ready to be changed.
func (g *graft) branches() ([]*branch.Branch, error) {
	var ids []pool.ID
	if err := g.t.Each(func(b *branch.Branch) error { ids = append(ids, b.ID); return nil }); err != nil {
		return nil, err
	}
	out := make([]*branch.Branch, len(ids))
	for i, id := range ids {
		l, err := g.t.Load(id)
		if err != nil {
			return nil, err
		}
		out[i] = l.Branch
	}
	slices.SortFunc(out, func(a, b *branch.Branch) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
