package intake

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// How an import compares a file with what it brought before. A node is recognised by its words as they are in the file, so a message that an embedder's
// hook or a redaction changed does not look new. A node that said several things over time has a record for each: the first under its own key, the others
// under longer keys.

func sourceNode(context, message pool.ID, words pool.Hash) base.SourceNode {
	return base.SourceNode{Context: context, Message: message, Words: [8]byte(words[:8])}
}

// nodeKey returns the key of a node's first record.
func (in *Incoming) nodeKey(i int) []byte {
	return base.SourceKey(in.Format, in.Conversation, in.Nodes[i].ID)
}

// match is how a node relates to what was imported of it before.
type match struct {
	key     []byte        // where its record is written: the key of the message that it continues, or a free one for a new message
	message *pool.Message // the stored message that it is or continues; nil: none
	goesOn  bool          // it continues the stored message
	untaken []string      // what the file has beside its words otherwise than the stored message, which stays
	changed bool          // it differs from every message that the node was before
	// redacted: parts of the stored message were redacted here, which stays as it is.
	redacted bool
}

// matching compares a node of a known conversation with what was imported of it.
func (in *Incoming) matching(tx kv.Tx, context pool.ID, i int) (match, error) {
	key := in.nodeKey(i)
	found := match{key: key}
	if in.Nodes[i].ID == "" {
		return found, nil
	}
	records, err := variants(tx, context, key)
	if err != nil {
		return found, err
	}
	words := [8]byte(in.words[i][:8])
	for _, exact := range []bool{true, false} {
		for _, v := range records {
			if exact != (v.node.Words == words) {
				continue
			}
			m, err := poolstore.Get(tx, context, v.node.Message)
			if err != nil {
				return found, err
			}
			if m == nil {
				continue
			}
			now, err := in.whole(i)
			if err != nil {
				return found, err
			}
			redacted := v.node.Words == [8]byte{}
			if !exact && !redacted {
				if redacted, err = wasRedacted(tx, m.ID); err != nil {
					return found, err
				}
			}
			if redacted {
				return match{key: v.key, message: m, redacted: true, untaken: []string{redactedHere}}, nil
			}
			later := isAnswer(m) && poolstore.Continues(m, now)
			if exact || later || isAnswer(m) && poolstore.Continues(now, m) {
				same := match{key: v.key, message: m, goesOn: !exact && !later}
				if !same.goesOn {
					same.untaken, err = besideOf(now, m)
				}
				return same, err
			}
			found.changed = true
		}
	}
	if found.changed {
		found.key = slices.Concat(key, words[:])
	}
	return found, nil
}

// redactedHere is reported of a message that the file has with other words.
const redactedHere = "text (parts of it were redacted here)"

// wasRedacted reports whether parts of a message were redacted here.
func wasRedacted(tx kv.Tx, id pool.ID) (bool, error) {
	key := base.GoneID(id)
	var mark base.GoneMark
	ok, err := base.GetRecord(tx, base.GoneBucket, key[:], &mark)
	return ok && mark.Kind == base.GoneRedacted, err
}

// variant is one thing that a node has said.
type variant struct {
	key  []byte
	node base.SourceNode
}

func variants(tx kv.Tx, context pool.ID, key []byte) ([]variant, error) {
	var out []variant
	err := tx.Scan(base.SourceBucket, kv.Prefix(key), func(k, value []byte) error {
		n, ok := base.ParseSourceNode(value)
		if ok && n.Context == context && (len(k) == len(key) || len(k) == len(key)+len(n.Words)) {
			out = append(out, variant{slices.Clone(k), n})
		}
		return nil
	})
	return out, err
}

// known finds the nodes that are stored already, and writes records for the others. twice is as of importMore.
func (g *graft) known(st *journal.StoreTxn, twice bool, res *record.Imported) error {
	for i := range g.in.Nodes {
		n := &g.in.Nodes[i]
		found, err := g.in.matching(g.t.Tx, g.t.ID, i)
		if err != nil {
			return err
		}
		if found.goesOn {
			if found.goesOn, err = g.grows(found.message); err != nil {
				return err
			}
			if found.changed = !found.goesOn; found.changed {
				found = match{key: slices.Concat(g.in.nodeKey(i), g.in.words[i][:8]), changed: true}
			}
		}
		switch {
		case found.goesOn:
			g.replaced[found.message.ID], g.grown[i] = i, found.message
			g.stored[n.Message.ID] = found.message.ID
			if twice {
				if err := g.outgrown(found.message, i, res); err != nil {
					return err
				}
			}
		case found.message != nil:
			g.stored[n.Message.ID] = found.message.ID
			g.home[i], n.Message = found.message.Home, g.in.asKnown(found.message)
			if !n.Further {
				res.Known++
			}
			g.in.redacted = g.in.redacted || found.redacted
			noteUntaken(res, n.ID, "", found.untaken...)
			continue
		case found.changed:
			g.changed[i] = true
			res.Changed++
		}
		if !found.goesOn {
			if err := linkCopy(st, g.in, g.t.ID, n); err != nil {
				return err
			}
		}
		countNode(res, n)
		if n.ID == "" {
			continue
		}
		id := n.Message.ID
		if found.goesOn {
			id = found.message.ID
		}
		if err := g.t.PutRaw(base.SourceBucket, found.key, sourceNode(g.t.ID, id, g.in.words[i]).Value()); err != nil {
			return err
		}
	}
	return nil
}

// outgrown names what a message that the same file continues later has beside its words, and the later one not.
func (g *graft) outgrown(was *pool.Message, i int, res *record.Imported) error {
	now, err := g.in.whole(i)
	if err != nil {
		return err
	}
	lost, err := besideOf(was, now)
	for _, what := range lost {
		noteUntaken(res, g.in.Nodes[i].ID, "", "the earlier "+what)
	}
	return err
}

// asKnown returns a stored message with what a node needs of it.
func (in *Incoming) asKnown(m *pool.Message) *pool.Message {
	if in.Contents == nil {
		return m
	}
	light := &pool.Message{ID: m.ID, Role: m.Role, Kind: m.Kind, Created: m.Created, Home: m.Home, CopiedFrom: m.CopiedFrom}
	for _, c := range m.Calls {
		light.Calls = append(light.Calls, pool.Call{ID: c.ID, Status: c.Status, Execution: c.Execution, Reason: c.Reason})
	}
	if r := m.Result; r != nil {
		light.Result = &pool.Result{RequestID: r.RequestID, IsError: r.IsError}
	}
	return light
}

// isAnswer reports whether a longer text of the message is the same message written on. A person's or a system's text that is longer is an edit.
func isAnswer(m *pool.Message) bool { return m.Role == pool.Assistant || m.Role == pool.ToolRole }

// grows reports whether a stored answer may become the file's longer one in its place: only where nothing of this store stands after it.
func (g *graft) grows(was *pool.Message) (bool, error) {
	all, err := g.branches()
	if err != nil {
		return false, err
	}
	for _, b := range all {
		ids, err := branchstore.IDs(g.t.Tx, g.t.ID, b.Pieces)
		if err != nil {
			return false, err
		}
		at := slices.Index(ids, was.ID)
		for _, id := range ids[at+1:] {
			m, err := poolstore.Get(g.t.Tx, g.t.ID, id)
			if err != nil {
				return false, err
			}
			if at >= 0 && (m == nil || m.Source == nil || m.Source.Format != g.in.Format || m.Source.Conversation != g.in.Conversation) {
				return false, nil
			}
		}
	}
	return true, nil
}

// replace makes stored messages that have grown say what the file says. They keep their ids and their places, and what a person decided about them.
func (g *graft) replace(res *record.Imported) error {
	if len(g.replaced) == 0 {
		return nil
	}
	for _, node := range slices.Sorted(maps.Values(g.replaced)) {
		n := &g.in.Nodes[node]
		was := g.grown[node]
		now, err := g.in.whole(node)
		if err != nil {
			return err
		}
		longer := *now
		longer.ID, longer.Home, longer.CopiedFrom, longer.Created = was.ID, was.Home, was.CopiedFrom, was.Created
		if longer.Hidden != was.Hidden || longer.Unsent != was.Unsent {
			noteUntaken(res, n.ID, "", "whether it is hidden or sent")
			longer.Hidden, longer.Unsent = was.Hidden, was.Unsent
		}
		src := pool.Source{Format: g.in.Format, Conversation: g.in.Conversation, Node: n.ID}
		if now.Source != nil {
			src = *now.Source
		}
		src.GrewFrom = int64(len(was.Text()))
		if was.Source != nil && was.Source.GrewFrom > 0 {
			src.GrewFrom = was.Source.GrewFrom
		}
		longer.Source = &src
		if err := g.t.Rewrite(&longer); err != nil {
			return err
		}
		g.home[node], n.Message = was.Home, g.in.asKnown(&longer)
		g.t.OnContext = true
		noteImported(res, "the answer %s has grown from %d to %d bytes", n.ID, len(was.Text()), len(longer.Text()))
	}
	return g.touchGrown()
}

// touchGrown gives the branches with messages that have grown new revisions.
func (g *graft) touchGrown() error {
	all, err := g.branches()
	if err != nil {
		return err
	}
	for _, b := range all {
		ids, err := branchstore.IDs(g.t.Tx, g.t.ID, b.Pieces)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(ids, func(id pool.ID) bool { _, grown := g.replaced[id]; return grown }) {
			g.t.Touch(b)
		}
	}
	return nil
}

// retitle makes the title and the app data follow the file where they differ from its newest earlier state. A title given by the file beats one made from a
// message, and a title given here beats both. It reports what is not taken and, if the conversation comes twice in one file, what the earlier one said.
func (g *graft) retitle(src *base.SourceRecord, twice bool, res *record.Imported) {
	rec, about := g.t.Rec, g.in.about()
	newer := g.dated >= src.Dated
	switch own, other := !g.in.Derived, g.in.Title != rec.Title; {
	case g.in.Title == "":
	case strings.Contains(rec.Title, base.RedactedMark):
		delete(about, "") // no hash of it stays here
	case !rec.Named() && (newer && own == !rec.Derived && about[""] != src.About[""] || own && rec.Derived):
		if twice && other && !rec.Derived {
			noteUntaken(res, "", "", "the earlier title")
		}
		if other {
			noteImported(res, "its title follows the file; it was %q", rec.Title)
		}
		rec.Title, rec.Derived, g.t.OnContext = g.in.Title, g.in.Derived, true
	case own && other && about[""] != src.About[""]:
		noteUntaken(res, "", "", "title")
	}
	for _, k := range slices.Sorted(maps.Keys(g.in.AppData)) {
		data, was := g.in.AppData[k], rec.AppData[k]
		switch {
		case was != nil && !newer:
			noteUntaken(res, "", "", unlike("app data "+k, data, was)...)
			continue
		case bytes.Contains(was, []byte(base.RedactedMark)):
			delete(about, k)
			continue
		case was != nil && about[k] == src.About[k]:
			continue
		case twice:
			noteUntaken(res, "", "", unlike("the earlier app data "+k, was, data)...)
		}
		if !bytes.Equal(was, data) {
			noteImported(res, "its app data %q follow the file", k)
		}
		rec.AppData, g.t.OnContext = withValue(rec.AppData, k, data), true
	}
	if was, has := src.About[""]; rec.Named() && has {
		about[""] = was
	}
	if newer {
		src.Dated, src.About = g.dated, about
	}
}

// relabel makes the labels follow the file: it adds labels that the file's newest earlier state did not have, and removes those that the file no longer
// has.
func (g *graft) relabel(src *base.SourceRecord, res *record.Imported) error {
	if g.dated < src.Dated || slices.Equal(g.in.Labels, src.Labels) {
		return nil
	}
	labels := g.t.Rec.Labels
	var own []string // labels of the file that somebody gave here before: they stay if the file drops them
	for _, l := range src.Labels {
		if !slices.Contains(g.in.Labels, l) && slices.Contains(labels, l) {
			labels = base.WithoutLabel(labels, l)
			noteImported(res, "its label %q is gone, as in the file", l)
		}
	}
	for _, l := range g.in.Labels {
		switch {
		case slices.Contains(src.Labels, l):
			continue
		case slices.Contains(labels, l):
			own = append(own, l)
			continue
		}
		var err error
		if labels, err = base.WithLabels(labels, l); err != nil {
			return err
		}
		noteImported(res, "it has the label %q, as in the file", l)
	}
	src.Labels = slices.DeleteFunc(slices.Clone(g.in.Labels), func(l string) bool { return slices.Contains(own, l) })
	g.t.OnContext = g.t.OnContext || !slices.Equal(labels, g.t.Rec.Labels)
	g.t.Rec.Labels = labels
	return nil
}

// tags names messages as the file does. A name that is in use here keeps its message.
func (g *graft) tags() error {
	for _, name := range slices.Sorted(maps.Keys(g.in.Tags)) {
		given, err := branchstore.ImportedName(name)
		if err != nil {
			return err
		}
		key := base.Under(g.t.ID, []byte(given)...)
		old, err := g.t.Tx.Get(base.TagBucket, key)
		if err != nil {
			return err
		}
		if old != nil {
			continue
		}
		id := g.in.Nodes[g.in.Tags[name]-1].Message.ID
		g.t.OnContext = true
		if err := g.t.PutRaw(base.TagBucket, key, id[:]); err != nil {
			return err
		}
	}
	return nil
}

func withValue(all map[string]json.RawMessage, name string, value json.RawMessage) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(all)+1)
	maps.Copy(out, all)
	out[name] = value
	return out
}

// about hashes the title and the app data of a conversation.
func (in *Incoming) about() map[string]uint64 {
	out := map[string]uint64{"": AboutHash(in.Title)}
	for k, data := range in.AppData {
		out[k] = AboutHash(string(data))
	}
	return out
}

// AboutHash is the hash of a title or app data of a file in a SourceRecord.
func AboutHash(text string) uint64 {
	h := pool.HashOf([]byte(text))
	return binary.BigEndian.Uint64(h[:])
}
