package intake

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// Incoming is a conversation on its way into the store.
type Incoming struct {
	record.Incoming
	awaited  *awaited      // of the transaction under way
	ahead    *NativeImport // with the messages that are stored already
	prepared bool          // by Ready
	erased   int           // nodes that were purged here and are left out, by Import
	redacted bool          // it has nodes of which parts were redacted here
	wiped    bool          // the conversation was purged here
	anew     bool          // its nodes are compared with what is here, even if they are as in the last import
	back     int           // nodes that were purged or redacted here and are brought all the same
	print    pool.Hash     // the fingerprint of what the file says, by Ready
	words    []pool.Hash
}

// whole returns the complete message of a node.
func (in *Incoming) whole(i int) (*pool.Message, error) {
	if in.Contents == nil {
		return in.Nodes[i].Message, nil
	}
	m, err := in.Contents.Get(in.Nodes[i].Message)
	if err != nil {
		err = fmt.Errorf("the contents of a message of %q cannot be read back: %w", in.Title, err)
	}
	return m, err
}

// fingerprint returns a hash that changes with a conversation's title, data, nodes, branches or the words of a message. It also remembers the words' hashes
// before an embedder's hook changes the messages.
func (in *Incoming) fingerprint() (pool.Hash, error) {
	h := sha256.New()
	in.words = make([]pool.Hash, len(in.Nodes))
	b := fmt.Appendf(nil, "%q %t %q %q %q\n", in.Title, in.Derived, in.Labels, in.System, in.Prompt)
	for _, values := range []map[string]json.RawMessage{in.AppData, in.Settings} {
		for _, k := range slices.Sorted(maps.Keys(values)) {
			b = fmt.Appendf(b, "%q %d\n", k, len(values[k]))
			b = append(b, values[k]...)
		}
	}
	for i, n := range in.Nodes {
		m, err := in.whole(i)
		if err != nil {
			return pool.Hash{}, err
		}
		in.words[i] = poolstore.Words(m)
		rest, err := poolstore.Encode(beside(m))
		if err != nil {
			return pool.Hash{}, err
		}
		h.Write(rest)
		b = binary.AppendUvarint(append(b, in.words[i][:]...), uint64(n.Parent))
		b = append(binary.AppendUvarint(b, uint64(len(n.ID))), n.ID...)
		if len(b) > 1<<16 {
			h.Write(b)
			b = b[:0]
		}
	}
	for _, br := range in.Branches {
		b = fmt.Appendf(b, "%q %d %q %q %q\n", br.Name, br.Leaf, br.System, br.Prompt, br.Settings)
	}
	for _, m := range in.Loose {
		words := poolstore.Words(m)
		b = append(b, words[:]...)
	}
	h.Write(b)
	return pool.Hash(h.Sum(nil)), nil
}

// dated returns the newest time in the file's state of the conversation.
func (in *Incoming) dated() pool.Time {
	at := in.Updated
	for _, n := range in.Nodes {
		at = max(at, n.Message.Created)
	}
	return at
}

// ready checks a conversation's shape and prepares its messages. No imported call waits for a decision.
func (in *Incoming) ready(s *base.Store) error {
	for i, n := range in.Nodes {
		if n.Message == nil || n.Parent > i || n.Parent < 0 {
			return base.Invalidf("node %d of conversation %q has no message, or a parent that does not come before it", i+1, in.Conversation)
		}
	}
	for name, n := range in.Tags {
		if n < 1 || n > len(in.Nodes) {
			return base.Invalidf("the tag %q of conversation %q names node %d, but there are %d nodes", name, in.Conversation, n, len(in.Nodes))
		}
		if _, err := branchstore.ImportedName(name); err != nil {
			return fmt.Errorf("a tag of conversation %q: %w", in.Conversation, err)
		}
	}
	for _, b := range in.Branches {
		if b.Leaf < 0 || b.Leaf > len(in.Nodes) {
			return base.Invalidf("branch %q of conversation %q ends at node %d, but there are %d nodes", b.Name, in.Conversation, b.Leaf, len(in.Nodes))
		}
		if _, err := branchstore.ImportedName(b.Name); err != nil {
			return fmt.Errorf("a branch of conversation %q: %w", in.Conversation, err)
		}
	}
	if len(in.Branches) == 0 {
		return base.Invalidf("conversation %q has no branch", in.Conversation)
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
func (in *Incoming) readyMessage(s *base.Store, m *pool.Message, ids map[pool.ID]bool) error {
	if m == nil {
		return base.Invalidf("a message of conversation %q is nil", in.Conversation)
	}
	if m.ID != (pool.ID{}) && ids[m.ID] {
		return base.Invalidf("two messages of conversation %q have the id %s", in.Conversation, m.ID)
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

// texts passes a conversation's texts other than messages through the embedder's hook.
func (in *Incoming) texts(s *base.Store) error {
	if err := s.Title(&in.Title); err != nil {
		return err
	}
	in.Labels = reachable(in.Labels)
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

// reachable returns labels of a file, each with a name that an address can have.
func reachable(labels []string) []string {
	labels = slices.Clone(labels)
	for i := range labels {
		labels[i] = branchstore.Reachable(labels[i])
	}
	return labels
}

// branchTexts passes the texts of a branch through the embedder's hook.
func branchTexts(s *base.Store, system, prompt *string, set *map[string]json.RawMessage, sessions *[]branch.Session) error {
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

// ImportRun makes the imports of one command. One undo takes them all back.
type ImportRun struct {
	store *base.Store
	// remove takes a context out of the store with all that belongs to it.
	remove func(s *base.Store, tx kv.RwTx, id pool.ID, rec *base.ContextRecord) error
	group  uint64
	came   map[record.SourceLink]string // the file that each conversation came from last
	files  []record.ImportedFile        // to be noted
	made   map[pool.ID]bool             // contexts that came in by their ids
	fresh  map[pool.ID]bool             // those of them that were not there before
	tasks  map[pool.ID]*record.Task     // the tasks of those that are sub-contexts
	// spans has the ids of the contexts that were there when the first one came in by its ids, and of those that came in since.
	spans   map[pool.ID]span
	renamed map[pool.ID]map[pool.ID]pool.ID // for each context that came in: the messages that have other ids here
	// Purged makes the run bring what was purged here.
	Purged bool
	gone   goneMarks
}

// NewImportRun begins the imports of one command. remove takes a context out of the store with all that belongs to it.
func NewImportRun(s *base.Store, remove func(*base.Store, kv.RwTx, pool.ID, *base.ContextRecord) error) *ImportRun {
	return &ImportRun{store: s, remove: remove, came: map[record.SourceLink]string{}}
}

// Import stores conversations in one transaction. For several calls that one undo takes back see ImportRun.
func Import(ctx context.Context, s *base.Store, in []*record.Incoming) ([]record.Imported, error) {
	r := NewImportRun(s, nil)
	all := make([]*Incoming, len(in))
	for i, c := range in {
		if c == nil {
			return nil, base.Invalidf("a conversation is nil")
		}
		all[i] = &Incoming{Incoming: *c}
	}
	done, err := r.Import(ctx, all)
	for i, c := range in {
		c.Stored = all[i].Stored
	}
	return done, err
}

// Import stores conversations in one transaction, except that a conversation that occurs several times needs one for each, and a large one needs several.
// New conversations are one operation of the store. A known conversation gets what is new, as an operation of its own: nodes that are not there yet, and
// branches whose path no branch holds. Import changes the messages: they get ids.
func (r *ImportRun) Import(ctx context.Context, in []*Incoming) ([]record.Imported, error) {
	for _, c := range in {
		if err := r.Ready(c); err != nil {
			return nil, err
		}
	}
	out := make([]record.Imported, len(in))
	if err := r.leaveOutGone(ctx, in); err != nil {
		return nil, err
	}
	all := largeAlone(in, rounds(in, linkedFirst(in)))
	for n, round := range all {
		if len(round) == 1 {
			if err := r.storeAhead(ctx, in[round[0]]); err != nil {
				return out, err
			}
		}
		err := r.update(ctx, func(st *journal.StoreTxn) (err error) {
			if err := lookAhead(st.Tx, in, round); err != nil {
				return err
			}
			for _, i := range round {
				if out[i], err = r.importOne(st, in[i]); err != nil {
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
		for _, i := range round {
			if c := in[i]; c.File != "" && c.Conversation != "" {
				r.came[record.SourceLink{Format: c.Format, Conversation: c.Conversation}] = c.File
			}
		}
	}
	r.files = nil
	for _, c := range in {
		c.Stored = true
	}
	return out, nil
}

// Ready checks a conversation and prepares its messages, once. Import also does that; but since it needs no transaction, another goroutine can do it
// before.
func (r *ImportRun) Ready(in *Incoming) error {
	if in.prepared {
		return nil
	}
	err := in.ready(r.store)
	in.prepared = err == nil
	return err
}

// rounds cuts an order into parts that have each conversation once: what one transaction adds is complete only after it.
func rounds(in []*Incoming, order []int) [][]int {
	seen := make(map[record.SourceLink]int, len(in))
	out := [][]int{nil}
	for _, i := range order {
		l := record.SourceLink{Format: in[i].Format, Conversation: in[i].Conversation}
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

// linkedFirst returns the order in which conversations are stored: those that others belong to, or have copies of, come before these.
func linkedFirst(in []*Incoming) []int {
	index := make(map[record.SourceLink]int, len(in))
	for i, c := range in {
		index[record.SourceLink{Format: c.Format, Conversation: c.Conversation}] = i
	}
	order := make([]int, 0, len(in))
	begun := make([]bool, len(in)) // so that a circle ends
	type frame struct {
		at    int
		links []record.SourceLink
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

// links returns the conversations that this one refers to, without immediate repetitions.
func (in *Incoming) links() []record.SourceLink {
	var out []record.SourceLink
	if in.Parent != nil {
		out = append(out, *in.Parent)
	}
	for _, n := range in.Nodes {
		l := record.SourceLink{Format: in.Format, Conversation: n.CopyOf.Conversation}
		if l.Conversation != "" && (len(out) == 0 || out[len(out)-1] != l) {
			out = append(out, l)
		}
	}
	return out
}

// update makes one operation of the run. What a session's own file tells of its calls is told of the gate's; of another store's file NativeImport asks.
func (r *ImportRun) update(ctx context.Context, fn func(*journal.StoreTxn) error) error {
	var group uint64
	err := r.store.Update(base.AsGate(ctx), func(tx kv.RwTx) error {
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

// importOne adds a new conversation, or what is new of a known one.
func (r *ImportRun) importOne(st *journal.StoreTxn, in *Incoming) (record.Imported, error) {
	if in.wiped {
		return record.Imported{Title: in.Title, Purged: in.erased, Wiped: true}, nil
	}
	key := base.SourceKey(in.Format, in.Conversation, "")
	var src base.SourceRecord
	known := false
	if in.Conversation != "" {
		var err error
		if known, err = base.GetRecord(st.Tx, base.SourceBucket, key, &src); err != nil {
			return record.Imported{}, err
		}
	}
	if known {
		rec, _, err := base.GetContext(st.Tx, src.Context)
		if err != nil {
			return record.Imported{}, err
		}
		if rec != nil {
			twice := in.File != "" && r.came[record.SourceLink{Format: in.Format, Conversation: in.Conversation}] == in.File
			res, err := importMore(st, in.again(), key, src, twice)
			return in.noteGone(res), err
		}
	}
	res, err := importNew(st, in, key)
	return in.noteGone(res), err
}

func importNew(st *journal.StoreTxn, in *Incoming, key []byte) (record.Imported, error) {
	if in.Stored { // its messages have ids in another context
		return record.Imported{}, base.Invalidf("conversation %q was imported already: read it anew to import it once more", in.Title)
	}
	if in.ahead != nil {
		return in.ahead.finishIncoming(st, in, key)
	}
	id := pool.NewID()
	t, err := st.NewContext(id, in.Title, pool.ID{}, in.Settings)
	if err != nil {
		return record.Imported{}, err
	}
	t.Rec.Derived, t.Rec.AppData = in.Derived, in.AppData
	if t.Rec.Labels, err = base.WithLabels(nil, in.Labels...); err != nil {
		return record.Imported{}, err
	}
	if in.Created != 0 {
		t.Rec.Created = in.Created
	}
	t.Fresh = map[pool.ID]bool{}
	for _, n := range in.Nodes {
		t.Fresh[n.Message.ID] = true
	}
	if err := linkAll(st, t, in); err != nil {
		return record.Imported{}, err
	}
	res := record.Imported{Context: id, Created: true}
	for i := range in.Nodes {
		if err := linkCopy(st, in, id, &in.Nodes[i]); err != nil {
			return res, err
		}
		countNode(&res, &in.Nodes[i])
	}
	g := &graft{t: t, in: in, home: make([]pool.Home, len(in.Nodes))}
	if err := g.loose(); err != nil {
		return res, err
	}
	for i := range in.Branches {
		if _, err := g.newBranch(i, i == 0, pool.NewID()); err != nil {
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
	if err := writeSources(st, in, key, base.SourceRecord{Context: id, Dated: in.dated(), About: in.about(), Labels: in.Labels}, nil); err != nil {
		return res, err
	}
	if err := t.PutBranches(); err != nil {
		return res, err
	}
	if in.Updated != 0 && in.Updated < t.Now { // a time in the future would keep it ahead of what changes now
		t.Now, t.Dated = in.Updated, in.Updated
	}
	if err := takeIn(st, in, id); err != nil {
		return res, err
	}
	err = st.Made(t, false)
	return res, err
}

// takeIn makes the links that others have to a conversation.
func takeIn(st *journal.StoreTxn, in *Incoming, id pool.ID) error {
	in.awaited.came(in, id)
	if in.awaited.parents[in.link()] {
		if err := adopt(st, in.link(), id); err != nil {
			return err
		}
	}
	if in.awaited.followed[in.Format] {
		if err := adoptFollowers(st, in, id); err != nil {
			return err
		}
	}
	if !in.awaited.copied[in.link()] {
		return nil
	}
	return linkCopies(st, in)
}

// countNode counts an added node.
func countNode(res *record.Imported, n *record.Node) {
	switch {
	case n.Further:
	case n.Message.CopiedFrom != nil:
		res.Known++
	default:
		res.Messages++
	}
}

// dropUnusedMain removes the branch main that every new context has, unless the conversation has a branch of that name.
func dropUnusedMain(t *journal.Txn, in *Incoming) error {
	for _, b := range in.Branches {
		if b.Name == base.MainBranch {
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

// writeSources records a conversation and its nodes as known. To undo a new context it is enough to remove the record of the conversation, since its nodes
// mean nothing without it. t is the operation that adds to a known conversation, nil for a new one.
func writeSources(st *journal.StoreTxn, in *Incoming, key []byte, src base.SourceRecord, t *journal.Txn) error {
	if in.Conversation == "" {
		return nil
	}
	if src.Fingerprint, src.Digest = in.print, in.Digest; in.erased > 0 || in.redacted { // the next import says again what it leaves out
		src.Fingerprint, src.Digest = pool.Hash{}, pool.Hash{}
	}
	raw, err := base.EncodeRecord(src)
	if err != nil {
		return err
	}
	switch {
	case t != nil && t.Idle(): // nothing is new: this is no operation
		return st.Tx.Put(base.SourceBucket, key, raw)
	case t != nil:
		return t.PutRaw(base.SourceBucket, key, raw)
	}
	old, err := st.Tx.Get(base.SourceBucket, key)
	if err != nil {
		return err
	}
	st.Changes = append(st.Changes, base.Change{Kind: base.RecordChange, Bucket: base.SourceBucket, Key: key, Old: bytes.Clone(old)})
	if err := st.Tx.Put(base.SourceBucket, key, raw); err != nil {
		return err
	}
	for i, n := range in.Nodes {
		if n.ID == "" || in.ahead != nil {
			continue
		}
		if err := st.Tx.Put(base.SourceBucket, in.nodeKey(i), sourceNode(src.Context, n.Message.ID, in.words[i]).Value()); err != nil {
			return err
		}
	}
	return nil
}

// graft puts the nodes of a tree into a context, each on the first branch that holds it.
type graft struct {
	t    *journal.Txn
	in   *Incoming
	home []pool.Home // each node's place; zero: not stored yet
	// twins lists the nodes that have the same message, by its id; nil if there are none.
	twins map[pool.ID][]int
	// stored maps the file's message ids to those of the stored messages, for a conversation that comes again; nil for a new one.
	stored map[pool.ID]pool.ID
	// replaced maps stored messages that have grown since to the nodes that say more, and grown those nodes to the messages as they were.
	replaced map[pool.ID]int
	grown    map[int]*pool.Message
	// changed has the nodes that differ from what was imported of them before.
	changed map[int]bool
	// skipped has messages on no branch that differ from what is here, and are stored only if something refers to them.
	skipped map[pool.ID]bool
	// late has the results of such a file that go to no model.
	late map[pool.ID]bool
	// unheld has its messages that are here on no branch.
	unheld map[pool.ID]bool
	// erased has the branches of such a file that were purged here.
	erased map[pool.ID]bool
	// begun: the conversation had nothing but calls of an agent's hook.
	begun bool
	// dated is the newest time in the file's state of the conversation.
	dated pool.Time
	// brought has the messages of a file of our own format that the store did not have.
	brought map[pool.ID]bool
}

func (g *graft) loose() error {
	for _, m := range g.in.Loose {
		if err := g.t.Store1(m); err != nil {
			return err
		}
	}
	return nil
}

// path returns the nodes from the root to a leaf.
func (g *graft) path(leaf int) []int { return g.in.path(leaf) }

// pieces stores the nodes of a path that are not stored yet, in the branch's segment, and returns the history.
func (g *graft) pieces(b *branch.Branch, path []int) ([]branch.Piece, error) {
	var out []branch.Piece
	for i := 0; i < len(path); {
		if err := g.there(path[i]); err != nil {
			return nil, err
		}
		if h := g.home[path[i]]; h.Segment != 0 {
			out = branchstore.Join(out, branch.Piece{Segment: h.Segment, From: h.Position, To: h.Position + 1})
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
		out = branchstore.Join(out, p)
		i = j
	}
	return out, nil
}

// there finds the place of a node's message that the context already has under its id.
func (g *graft) there(node int) error {
	if g.home[node].Segment != 0 || g.t.Fresh[g.in.Nodes[node].Message.ID] {
		return nil
	}
	has, err := poolstore.Has(g.t.Tx, g.t.ID, g.in.Nodes[node].Message.ID)
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

// newBranch makes branch i of a conversation, under an id, and returns its name. The first branch of a new context replaces main if it has that name.
func (g *graft) newBranch(i int, first bool, id pool.ID) (string, error) {
	want := g.in.Branches[i]
	b, err := g.takeName(want.Name, first, id)
	if err != nil {
		return "", err
	}
	if b.At, b.Tokens = want.At, want.Tokens; want.From != "" {
		if b.From, err = g.origin(want.From); err != nil {
			return "", err
		}
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
	b.AppData = want.AppData
	if b.System, err = g.prompt(want.System, g.in.System); err != nil {
		return "", err
	}
	b.Prompt, err = g.prompt(want.Prompt, g.in.Prompt)
	return b.Name, err
}

func (g *graft) prompt(own, all string) (string, error) {
	own = cmp.Or(own, all)
	return g.t.PutPrompt(own)
}

// origin returns the id of the branch here that a name of the file means, the zero id if there is none.
func (g *graft) origin(name string) (pool.ID, error) {
	for i := range g.in.Branches {
		if b := &g.in.Branches[i]; b.Name == name {
			l, err := g.t.Load(b.ID)
			if l == nil || err != nil {
				return pool.ID{}, err
			}
			return b.ID, nil
		}
	}
	return pool.ID{}, nil
}

func (g *graft) takeName(name string, first bool, id pool.ID) (*branch.Branch, error) {
	name = branchstore.Reachable(name)
	if first && name == base.MainBranch {
		return g.t.Target, nil
	}
	other, err := branchstore.Lookup(g.t.Tx, g.t.ID, name)
	if err != nil {
		return nil, err
	}
	if other != (pool.ID{}) {
		if name, err = g.t.FreeName(name); err != nil {
			return nil, err
		}
	}
	return g.t.CreateAs(id, name, nil)
}

// again copies what importMore changes, so that a second run of the transaction begins with the file's messages and not with those of the store.
func (in *Incoming) again() *Incoming {
	out := *in
	out.Nodes = slices.Clone(in.Nodes)
	return &out
}

// importMore adds what is new to a known conversation. twice says that it came from the same file before: then the report names what it replaces.
func importMore(st *journal.StoreTxn, in *Incoming, key []byte, src base.SourceRecord, twice bool) (record.Imported, error) {
	res := record.Imported{Context: src.Context}
	t, err := journal.BeginAt(st.Store, st.Tx, src.Context)
	if err != nil {
		return res, err
	}
	t.What = "import"
	res.Title, res.Branches, res.Trashed = t.Rec.Title, int(t.Rec.Branches), t.Rec.Trashed != 0
	if src.Fingerprint == in.print && !in.anew && t.Rec.Gated == "" {
		for _, n := range in.Nodes {
			if !n.Further {
				res.Known++
			}
		}
		return res, nil
	}
	g := &graft{t: t, in: in, home: make([]pool.Home, len(in.Nodes)), stored: map[pool.ID]pool.ID{}, replaced: map[pool.ID]int{}, changed: map[int]bool{}, grown: map[int]*pool.Message{}, dated: in.dated()}
	if err := g.known(st, twice, &res); err != nil {
		return res, err
	}
	if res.Trashed {
		if back, err := g.comesBack(st, &res); err != nil || !back {
			return res, err
		}
	}
	if err := g.relabel(&src, &res); err != nil {
		return res, err
	}
	g.retitle(&src, twice, &res)
	if err := linkAll(st, t, in); err != nil {
		return res, err
	}
	if g.begun, err = g.onlyGated(src); err != nil {
		return res, err
	}
	if err := g.answered(); err != nil {
		return res, err
	}
	if err := g.replace(&res); err != nil {
		return res, err
	}
	if err := g.extend(&res); err != nil {
		return res, err
	}
	if err := g.gated(); err != nil {
		return res, err
	}
	if g.begun {
		if err := g.begins(&res); err != nil {
			return res, err
		}
	}
	if err := g.tags(); err != nil {
		return res, err
	}
	res.Title, res.Branches = t.Rec.Title, int(t.Rec.Branches)
	t.OnContext = t.OnContext || res.Messages > 0 || res.NewBranches > 0 // so that undo finds it on any branch
	if err := writeSources(st, in, key, src, t); err != nil {
		return res, err
	}
	if err := takeIn(st, in, t.ID); err != nil {
		return res, err
	}
	done, err := t.Finish()
	if err == nil {
		res.Operation = done.Operation
	}
	return res, err
}

// comesBack takes a context out of the trash if the file has something new for it, and reports whether it does.
func (g *graft) comesBack(st *journal.StoreTxn, res *record.Imported) (bool, error) {
	res.Trashed = true
	news := res.Messages > 0
	for i := 0; i < len(g.in.Branches) && !news; i++ {
		want := &g.in.Branches[i]
		path := g.path(want.Leaf)
		if want.ID == (pool.ID{}) {
			b, err := g.longest(path, want.Name)
			if err != nil {
				return false, err
			}
			news = b.Branch == nil
			continue
		}
		b, err := g.line(path, want)
		if err != nil {
			return false, err
		}
		news = b.Branch == nil && !b.apart && !b.removed && !g.erased[want.ID]
	}
	if !news {
		return false, nil
	}
	res.Restored, res.Trashed = true, false
	return true, bringBack(st, g.t)
}

// bringBack takes a context out of the trash before something is added to it.
func bringBack(st *journal.StoreTxn, t *journal.Txn) error {
	if err := st.Trash(t, 0); err != nil {
		return err
	}
	if err := t.WriteContext(); err != nil {
		return err
	}
	raw, err := stored.Marshal(t.Rec)
	t.RecRaw = raw
	return err
}

// extend brings each branch of the conversation into the context. It adds nothing if a branch holds the path already, the rest of the path if a branch ends
// inside it, and else a new branch.
func (g *graft) extend(res *record.Imported) error {
	for i := range g.in.Branches {
		want := &g.in.Branches[i]
		if want.ID != (pool.ID{}) {
			if err := g.extendByID(i, res); err != nil {
				return err
			}
			continue
		}
		path := g.path(want.Leaf)
		b, err := g.longest(path, want.Name)
		if err != nil {
			return err
		}
		if b.Branch != nil {
			if err := g.continueBranch(b, path, want, res); err != nil {
				return err
			}
			continue
		}
		name, err := g.newBranch(i, i == 0 && g.begun, pool.NewID())
		if err != nil {
			return err
		}
		g.made(path, name, res)
	}
	return nil
}

// continueBranch adds the rest of a path to a branch that ends inside it, and reports what else the file says of the branch.
func (g *graft) continueBranch(b held, path []int, want *record.IncomingBranch, res *record.Imported) error {
	if b.same < len(path) {
		if err := g.holdResults(path, true, res); err != nil {
			return err
		}
		if err := g.lengthen(b, path, want); err != nil {
			return err
		}
	}
	what, err := g.besideBranch(b.Branch, want)
	noteUntaken(res, "", want.Name, what...)
	return err
}

// lengthen adds the rest of a path to a branch that ends inside it. A session of our own format that stands for a message that is here does not come with it,
// since a file decides nothing about what a model is told of that message.
func (g *graft) lengthen(b held, path []int, want *record.IncomingBranch) error {
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
	if want.ID != (pool.ID{}) && last <= b.same {
		return nil
	}
	more, err := g.sessions(want.Sessions, last)
	b.Sessions = append(b.Sessions, more...)
	return err
}

// sessions returns the sessions of want that begin after a position, with the ids under which their summaries are stored.
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

// longest finds the branch that a path extends: one that holds all of it, if possible the one of that name, else the longest non-empty one that ends inside
// it. Forks made here are somebody's own and are not extended.
func (g *graft) longest(path []int, name string) (held, error) {
	best, err := g.namesake(path, name)
	if err != nil || best.Branch != nil {
		return best, err
	}
	all, err := g.branches()
	if err != nil {
		return best, err
	}
	for _, b := range all {
		ids, err := branchstore.IDs(g.t.Tx, g.t.ID, b.Pieces)
		if err != nil {
			return best, err
		}
		h := held{b, g.same(ids, path)}
		whole := best.Branch != nil && best.same == len(path)
		switch {
		case h.same == len(path) && !whole:
			best = h
		case whole:
		case h.same == len(ids) && h.same > best.same && b.From == (pool.ID{}):
			best = h
		}
	}
	return best, nil
}

// namesake returns the branch of a name if it holds all of a path. It is looked at first, since a conversation that comes again may have thousands of branches.
func (g *graft) namesake(path []int, name string) (held, error) {
	id, err := branchstore.Lookup(g.t.Tx, g.t.ID, name)
	if err != nil || id == (pool.ID{}) {
		return held{}, err
	}
	l, err := g.t.Load(id)
	if err != nil {
		return held{}, err
	}
	ids, err := branchstore.IDs(g.t.Tx, g.t.ID, l.Pieces)
	if err != nil || g.same(ids, path) < len(path) {
		return held{}, err
	}
	return held{l.Branch, len(path)}, nil
}

// branches returns all branches by name, including those of this operation, loaded for changes.
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
