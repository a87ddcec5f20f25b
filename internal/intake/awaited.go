package intake

import (
	"encoding/binary"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/pool"
)

// awaited has which conversations others wait for, by the notes in the source bucket. It is read at the beginning of a transaction, for all conversations
// of a round at once, so that a server is not asked for each of them. Notes that are made in the transaction are added.
type awaited struct {
	parents, copied map[record.SourceLink]bool
	followed        map[string]bool                // by format
	nodes           map[string]map[string]*pool.ID // by format: the messages that conversations of the round continue, with the contexts that have them
	looked          map[string]bool                // by format: nodes has what is stored
}

// fetchedAtOnce bounds how many keys one question to a server has.
const fetchedAtOnce = 500

// readAwaited reads the notes about the conversations of a round, and has a server send at once what importOne reads of each.
func readAwaited(tx kv.Tx, round []*Incoming) (*awaited, error) {
	a := &awaited{parents: map[record.SourceLink]bool{}, copied: map[record.SourceLink]bool{}, followed: map[string]bool{}, nodes: map[string]map[string]*pool.ID{}, looked: map[string]bool{}}
	parents, copied := map[string]bool{}, map[string]bool{} // the formats with such notes
	var keys []kv.Key
	for _, in := range round {
		if _, seen := parents[in.Format]; !seen {
			var err error
			if parents[in.Format], err = has(tx, formatKey("wanted", in.Format)); err != nil {
				return nil, err
			}
			if copied[in.Format], err = has(tx, formatKey("copy", in.Format)); err != nil {
				return nil, err
			}
			if a.followed[in.Format], err = has(tx, formatKey("followed", in.Format)); err != nil {
				return nil, err
			}
		}
		if in.Parent == nil && in.Follows != "" {
			if a.nodes[in.Format] == nil {
				a.nodes[in.Format] = map[string]*pool.ID{}
			}
			a.nodes[in.Format][nodeKey(in.Follows)] = &pool.ID{}
		}
		if in.Conversation == "" {
			continue
		}
		l := in.link()
		keys = append(keys, kv.Key{Bucket: base.SourceBucket, Key: base.SourceKey(in.Format, in.Conversation, "")})
		if parents[in.Format] {
			keys = append(keys, kv.In(base.SourceBucket, kv.Prefix(parentKey(l))))
		}
		if copied[in.Format] {
			keys = append(keys, kv.In(base.SourceBucket, kv.Prefix(copyKey(in.Format, record.NodeLink{Conversation: in.Conversation}))))
		}
	}
	for ; len(keys) > 0; keys = keys[min(fetchedAtOnce, len(keys)):] {
		if err := kv.Fetch(tx, keys[:min(fetchedAtOnce, len(keys))]...); err != nil {
			return nil, err
		}
	}
	for _, in := range round {
		l, err := in.link(), error(nil)
		if parents[in.Format] {
			a.parents[l], err = has(tx, parentKey(l))
		}
		if err == nil && copied[in.Format] {
			a.copied[l], err = has(tx, copyKey(in.Format, record.NodeLink{Conversation: in.Conversation}))
		}
		if err != nil {
			return nil, err
		}
	}
	return a, nil
}

// lookAhead gives the conversations of a round what readAwaited reads for them.
func lookAhead(tx kv.Tx, all []*Incoming, round []int) error {
	in := make([]*Incoming, len(round))
	for i, n := range round {
		in[i] = all[n]
	}
	a, err := readAwaited(tx, in)
	for _, in := range in {
		in.awaited = a
	}
	return err
}

// note adds the note that linkAll makes of a conversation's parent, or of the message that it follows.
func (a *awaited) note(in *Incoming) {
	if in.Parent != nil {
		a.parents[*in.Parent] = true
		return
	}
	a.followed[in.Format] = true
}

// link names the conversation.
func (in *Incoming) link() record.SourceLink {
	return record.SourceLink{Format: in.Format, Conversation: in.Conversation}
}

// formatKey begins the keys of all notes of a kind about a format.
func formatKey(kind, format string) []byte {
	key := base.SourceKey(kind, format, "")
	return key[:len(key)-1]
}

// contextOf returns the context of the first conversation that has the message which a conversation of the round continues; the zero id: none has it yet.
// The first question of a round looks through all messages of the format for all that the round asks.
func (a *awaited) contextOf(tx kv.Tx, in *Incoming) (pool.ID, error) {
	wanted := a.nodes[in.Format]
	if !a.looked[in.Format] {
		a.looked[in.Format] = true
		if err := findNodes(tx, in.Format, wanted); err != nil {
			return pool.ID{}, err
		}
	}
	if at := wanted[nodeKey(in.Follows)]; at != nil {
		return *at, nil
	}
	return pool.ID{}, nil
}

// came notes that a context has the messages of a conversation of the round.
func (a *awaited) came(in *Incoming, id pool.ID) {
	wanted := a.nodes[in.Format]
	for i := 0; i < len(in.Nodes) && len(wanted) > 0; i++ {
		if at := wanted[nodeKey(in.Nodes[i].ID)]; at != nil && *at == (pool.ID{}) {
			*at = id
		}
	}
}

// findNodes sets the contexts of wanted messages of a format, by the ends of their keys.
func findNodes(tx kv.Tx, format string, wanted map[string]*pool.ID) error {
	left := len(wanted)
	first := base.SourceKey(format, "", "")
	first = first[:len(first)-2] // without the lengths of the conversation and the node
	return tx.Scan(base.SourceBucket, kv.Prefix(first), func(key, value []byte) error {
		size, n := binary.Uvarint(key[len(first):])
		if rest := len(key) - len(first) - n; n <= 0 || size > uint64(rest) {
			return nil
		}
		at := wanted[string(key[len(first)+n+int(size):])]
		node, is := base.ParseSourceNode(value)
		if at == nil || !is || *at != (pool.ID{}) {
			return nil
		}
		if *at = node.Context; left == 1 {
			return kv.ErrStop
		}
		left--
		return nil
	})
}

// nodeKey is the end of a message's key in the source bucket.
func nodeKey(node string) string { return string(base.SourceKey("", "", node)[2:]) }
