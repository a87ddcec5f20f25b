package exchange

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// Open Assistant's data: a line for each tree, {message_tree_id, prompt: {…, replies}}, or a line for each message with the id of its parent
// and of its tree, in any order.

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
	home  map[string]string // messages to their trees
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
}

var oasstKnown = keys("message_id", "user_message_id", "parent_id", "parent_message_id", "message_tree_id", "text", "role", "created_date", "replies", "model_name")

// row reads a message; false for what is none.
func (o *oasst) row(at place, v value, parent string) (oasstRow, bool) {
	row := oasstRow{at: at, id: firstOf(v.get("message_id").str(), v.get("user_message_id").str()), parent: parent}
	switch {
	case !v.is(objectKind):
		o.r.skip(1, at, "%s where a message should be", v.kind())
		return row, false
	case row.id == "" || v.get("role").str() == "":
		o.r.skip(1, at, "a message without id or role")
		return row, false
	}
	m := &chatctx.Message{Created: v.get("created_date").time(), Content: contentParts(v.get("text"))}
	roleOf(m, v.get("role").str())
	m.Meta.Model = v.get("model_name").str()
	m.Hidden = v.get("deleted").bool()
	keepRest(m, oasstName, v, oasstKnown)
	if o.r.damage(at, v) {
		source(m).Raw = append([]byte(nil), v.raw()...)
	}
	row.m = m
	return row, true
}

// nested reads a tree, without recursion.
func (o *oasst) nested(at place, v, prompt value) error {
	type level struct {
		v      value
		parent string
	}
	t := o.r.thread(at)
	todo := []level{{v: prompt}}
	for len(todo) > 0 {
		l := todo[0]
		todo = todo[1:]
		row, ok := o.row(at, l.v, l.parent)
		if !ok {
			continue
		}
		t.add(row.at, row.id, row.parent, row.m)
		for reply := range l.v.get("replies").items() {
			todo = append(todo, level{reply, row.id})
		}
	}
	in := &chatctx.Incoming{Conversation: firstOf(v.get("message_tree_id").str(), prompt.get("message_id").str()),
		AppData: appData(oasstName, leftover(v, keys("message_tree_id", "prompt")))}
	if in.Conversation == "" {
		in.Conversation = t.contentID()
	}
	in.Created = prompt.get("created_date").time()
	return t.emit(in, t.newestEnd())
}

func (o *oasst) flat(at place, v value) {
	row, ok := o.row(at, v, firstOf(v.get("parent_id").str(), v.get("parent_message_id").str()))
	if !ok {
		return
	}
	tree := v.get("message_tree_id").str()
	if tree == "" { // the root's id stands in
		if tree = row.id; row.parent != "" {
			if tree = o.home[row.parent]; tree == "" {
				tree = row.parent
			}
		}
	}
	o.home[row.id] = tree
	t := o.trees[tree]
	if t == nil {
		t = &oasstTree{id: tree}
		o.trees[tree], o.order = t, append(o.order, t)
	}
	t.rows = append(t.rows, row)
}

func (o *oasst) emit() error {
	for _, tree := range o.order {
		t := o.r.thread(tree.rows[0].at)
		var created pool.Time
		for _, row := range tree.rows {
			t.add(row.at, row.id, row.parent, row.m)
			if row.parent == "" {
				created = row.m.Created
			}
		}
		in := &chatctx.Incoming{Conversation: tree.id, Created: created}
		if err := t.emit(in, t.newestEnd()); err != nil {
			return err
		}
	}
	return nil
}
