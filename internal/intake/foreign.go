package intake

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// A message belongs to one context. A file that was edited, or made of a copy, may have messages whose ids another context of the store has. Such a message
// gets another id, the same each time, and records which message it is a copy of.
//
// ownID returns the id of a file's message in a context if its own id is taken by another message.

// ownID is the id that a message of a file has in a context where its own is another message's.
func ownID(context pool.ID, m *pool.Message) pool.ID {
	words := poolstore.Words(m)
	h := sha256.Sum256(slices.Concat(context[:], m.ID[:], words[:]))
	id := m.ID
	copy(id[6:], h[:]) // the first bytes are its time
	id[6], id[8] = 0x70|id[6]&0x0f, 0x80|id[8]&0x3f
	return id
}

// span is the range of the ids of a context's messages.
type span struct{ first, last pool.ID }

// with extends a span to include an id.
func (s span) with(id pool.ID) span {
	if s == (span{}) {
		return span{id, id}
	}
	return span{slices.MinFunc([]pool.ID{s.first, id}, compareIDs), slices.MaxFunc([]pool.ID{s.last, id}, compareIDs)}
}

func compareIDs(a, b pool.ID) int { return bytes.Compare(a[:], b[:]) }

// readSpans reads the spans of all contexts with messages, including those in the trash.
func readSpans(tx kv.Tx) (map[pool.ID]span, error) {
	spans := map[pool.ID]span{}
	for r := (kv.Range{}); ; {
		first, err := nextMessage(tx, r)
		if err != nil || first == nil {
			return spans, err
		}
		context := kv.Prefix(first[:16])
		last, err := nextMessage(tx, kv.Range{From: context.From, To: context.To, Reverse: true})
		if err != nil {
			return nil, err
		}
		spans[pool.ID(first[:16])] = span{pool.ID(first[16:]), pool.ID(last[16:])}
		if r.From = context.To; r.From == nil {
			return spans, nil
		}
	}
}

// nextMessage returns the first key of a message in a range, nil if there is none.
func nextMessage(tx kv.Tx, r kv.Range) (key []byte, err error) {
	err = tx.Scan(poolstore.Bucket, r, func(k, _ []byte) error {
		if len(k) != 32 {
			return nil
		}
		key = bytes.Clone(k)
		return kv.ErrStop
	})
	return key, err
}

// others returns those of the ids that other contexts have. It skips contexts whose spans have none of the ids, and in the others it seeks from one id to
// the next.
func (r *ImportRun) others(tx kv.Tx, context pool.ID, ids []pool.ID) (map[pool.ID]bool, error) {
	slices.SortFunc(ids, compareIDs)
	found := map[pool.ID]bool{}
	for other, s := range r.spans {
		from, _ := slices.BinarySearchFunc(ids, s.first, compareIDs)
		for at := ids[from:]; other != context && len(at) > 0 && compareIDs(at[0], s.last) <= 0; {
			key, err := nextMessage(tx, kv.Range{From: append(other[:], at[0][:]...), To: kv.Prefix(other[:]).To})
			if err != nil {
				return nil, err
			}
			if key == nil {
				break
			}
			id := pool.ID(key[16:])
			n, same := slices.BinarySearchFunc(at, id, compareIDs)
			if same {
				found[id] = true
				n++
			}
			at = at[n:]
		}
	}
	return found, nil
}

// brought adds the ids of messages that a file brought into a context to its span.
func (r *ImportRun) brought(context pool.ID, msgs []*pool.Message) {
	for _, m := range msgs {
		r.spans[context] = r.spans[context].with(m.ID)
	}
}

// settle gives messages that are to come into the context ids of their own, if another context has their ids or this context has other messages under them,
// and updates what refers to them.
func (i *NativeImport) settle(tx kv.Tx, msgs []*pool.Message, calls []NativeCall) error {
	var ask []pool.ID
	own := map[pool.ID]bool{}
	for _, m := range msgs {
		known, err := i.known(tx, m)
		switch {
		case err != nil:
			return err
		case known == asIs:
		case known == no:
			ask = append(ask, m.ID)
		default:
			own[m.ID] = true
			i.changed[ownID(i.context.ID, m)] = known == changed
		}
	}
	others, err := i.run.others(tx, i.context.ID, ask)
	if err != nil {
		return err
	}
	i.copied += len(others)
	for _, m := range msgs {
		if from := m.ID; own[from] || others[from] {
			m.ID, m.CopiedFrom = ownID(i.context.ID, m), &from
			i.renamed[from] = m.ID
		}
	}
	for _, m := range msgs {
		if m.CopiedFrom == nil {
			continue
		}
		if of := i.to(*m.CopiedFrom); of != m.ID {
			m.CopiedFrom = &of
		}
	}
	for n := range calls {
		calls[n].Message = i.to(calls[n].Message)
	}
	return nil
}

// How a context knows a message of a file.
const (
	no       = iota
	asIs     // it has the message under its id
	underOwn // it has the message under an id of its own
	changed  // it has another message under its id
)

// known looks up a message. A new context knows only what came with its file. A redacted message counts as the same.
func (i *NativeImport) known(tx kv.Tx, m *pool.Message) (int, error) {
	into := m
	if i.more == nil {
		return no, nil
	}
	was, err := poolstore.Get(tx, i.context.ID, m.ID)
	if err != nil {
		return no, err
	}
	if was != nil {
		if was.Kind == pool.Late && m.Result != nil { // as holdResults left it
			late := *m
			late.Kind, late.Unsent = was.Kind, was.Unsent
			m = &late
		}
		same, err := poolstore.SameBut(was, m, base.RedactedMark)
		if err != nil {
			return no, err
		}
		if same {
			what, err := besideOf(m, was)
			for _, w := range what {
				i.more.other = append(i.more.other, record.Untaken{Message: m.ID.String(), Branch: "", What: w})
			}
			*into = *was
			return asIs, err
		}
	}
	if was != nil && was.Source != nil && was.Source.GrewFrom > 0 && poolstore.Continues(was, m) { // the file has an earlier state of it
		*into = *was
		return asIs, nil
	}
	if was != nil {
		redacted, err := wasRedacted(tx, was.ID)
		if err != nil {
			return no, err
		}
		if redacted {
			i.more.other = append(i.more.other, record.Untaken{Message: m.ID.String(), Branch: "", What: redactedHere})
			*into = *was
			return asIs, nil
		}
	}
	has, err := poolstore.Has(tx, i.context.ID, ownID(i.context.ID, m))
	switch {
	case err != nil:
	case has:
		return underOwn, nil
	case was != nil:
		return changed, nil
	}
	return no, err
}

// to returns the id that a message of the file has here.
func (i *NativeImport) to(id pool.ID) pool.ID { return renamed(i.renamed, id) }

func renamed(ids map[pool.ID]pool.ID, id pool.ID) pool.ID {
	if own, is := ids[id]; is {
		return own
	}
	return id
}

// sessionsTo makes sessions refer to messages by their ids here.
func (i *NativeImport) sessionsTo(sessions []branch.Session) {
	for n := range sessions {
		s := &sessions[n]
		s.Summary = i.to(s.Summary)
		for d := range s.Digests {
			s.Digests[d].Message = i.to(s.Digests[d].Message)
		}
	}
}
