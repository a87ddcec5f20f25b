package exchange

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
)

// Open Assistant's data has a line for each tree, {message_tree_id, prompt: {…, replies}}, or a line for each message with the ids of its parent and its tree,
// in any order.

const oasstName = "oasst"

func detectOASST(h *head) bool {
	v := h.first()
	if v.get("prompt").has("replies") || v.get("prompt").has("message_id") {
		return true
	}
	role := v.get("role").str()
	if role != "prompter" && role != "assistant" || !v.has("text") {
		return false
	}
	return v.has("message_id") && v.has("parent_id") || v.has("user_message_id") && v.has("parent_message_id")
}

func readOASST(r *reading) error {
	o := &oasst{r: r, trees: map[string]*oasstTree{}, home: map[string]string{}}
	err := r.eachItem("", func(at place, v value) error {
		if p := v.get("prompt"); p.is(objectKind) {
			return o.nested(at, v, p)
		}
		o.flat(at, v)
		return nil
	})
	return r.atEnd(err, o.emit)
}

type oasst struct {
	r     *reading
	trees map[string]*oasstTree
	order []*oasstTree
	home  map[string]string // messages, to their trees
}

// oasstTree is a tree whose rows come one by one.
type oasstTree struct {
	id   string
	rows []oasstRow
}

type oasstRow struct {
	at         place
	id, parent string
	m          *chatctx.Message
	rank       *float64 // among its siblings, nil for none
}

// row reads a message. It returns false for anything else.
func (o *oasst) row(at place, v value, parent string) (oasstRow, bool) {
	row := oasstRow{at: at, id: v.pick("message_id|user_message_id").str(), parent: parent}
	switch {
	case !v.is(objectKind):
		o.r.skip(1, at, "%s that is not a message is left out", v.kind())
		return row, false
	case row.id == "" || v.get("role").str() == "":
		o.r.skip(1, at, "the message lacks an id or a role and is left out")
		return row, false
	}
	m := &chatctx.Message{Created: v.get("created_date").time(), Content: contentParts(v.get("text"))}
	roleOf(m, v.get("role").str())
	m.Meta.Model = v.get("model_name").str()
	m.Hidden = v.get("deleted").bool()
	if rank := v.get("rank"); rank.is(numberKind) {
		f, _ := rank.float()
		row.rank, rank.d.tokens[rank.i].used = &f, false // it is kept beside the message too
	}
	if v.get("replies").is(arrayKind) {
		v.get("replies").taken() // each is a record
	}
	o.r.whole(at, v, m)
	row.m = m
	return row, true
}

// rows reads a message and the replies in it, without recursion.
func (o *oasst) rows(at place, v value, parent string) []oasstRow {
	type level struct {
		v      value
		parent string
	}
	var rows []oasstRow
	todo := []level{{v, parent}}
	for len(todo) > 0 {
		l := todo[0]
		todo = todo[1:]
		row, ok := o.row(at, l.v, l.parent)
		if !ok {
			continue
		}
		rows = append(rows, row)
		for reply := range l.v.get("replies").items() {
			todo = append(todo, level{reply, row.id})
		}
	}
	return rows
}

// nested reads a line that is a tree.
func (o *oasst) nested(at place, v, prompt value) error {
	tree := &oasstTree{id: firstOf(v.get("message_tree_id").str(), prompt.get("message_id").str()), rows: o.rows(at, prompt, "")}
	prompt.taken()
	return o.tree(at, tree, v)
}

// flat reads a line that is a message; its tree has others.
func (o *oasst) flat(at place, v value) {
	rows := o.rows(at, v, v.pick("parent_id|parent_message_id").str())
	if len(rows) == 0 {
		return
	}
	row, tree := rows[0], v.get("message_tree_id").str()
	if tree == "" { // use the root's id instead
		if tree = row.id; row.parent != "" {
			if tree = o.home[row.parent]; tree == "" {
				tree = row.parent
			}
		}
	}
	t := o.trees[tree]
	if t == nil {
		t = &oasstTree{id: tree}
		o.trees[tree], o.order = t, append(o.order, t)
	}
	for _, row := range rows {
		o.home[row.id] = tree
	}
	t.rows = append(t.rows, rows...)
}

func (o *oasst) emit() error {
	for _, tree := range o.order {
		if err := o.tree(tree.rows[0].at, tree, value{}); err != nil {
			return err
		}
	}
	return nil
}

func (o *oasst) tree(at place, tree *oasstTree, v value) error {
	t := o.r.thread(at)
	in := &record.Incoming{Conversation: tree.id}
	for _, row := range tree.rows {
		t.add(row.at, row.id, row.parent, row.m)
		if row.parent == "" && in.Created == 0 {
			in.Created = row.m.Created
		}
	}
	return t.handOn(in, v, firstOf(tree.best(), t.newestEnd()))
}

// best returns the end of the path of the answers that were ranked first, "" if no message has a rank.
func (tree *oasstTree) best() string {
	first, ranked := map[string]*oasstRow{}, false
	for i := range tree.rows {
		row := &tree.rows[i]
		ranked = ranked || row.rank != nil
		if have := first[row.parent]; have == nil || row.rank != nil && (have.rank == nil || *row.rank < *have.rank) {
			first[row.parent] = row
		}
	}
	if !ranked {
		return ""
	}
	at := ""
	for range tree.rows {
		next := first[at]
		if next == nil {
			break
		}
		at = next.id
	}
	return at
}
