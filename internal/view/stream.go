package view

import (
	"bytes"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// Stream passes a conversation to put, record by record, as it is at the first look. at runs a function in a reading transaction, which may be another one each
// time. Between these the caller may take its time. With the name of a branch it passes that one alone, as no fork, with the tags and marks of its messages.
// Without calls it leaves their records out, of which messages tell enough to make them anew.
func Stream(id pool.ID, only string, calls bool, at func(func(kv.Tx, *base.ContextRecord) error) error, put func(record.Streamed) error) error {
	s := &streamer{id: id, only: only, at: at, put: put, withCalls: calls, calls: map[pool.ID][]*record.NativeCall{}, tags: map[string]pool.ID{}, index: map[step]int{}, seen: map[pool.ID]bool{}}
	var head *record.Native
	err := at(func(tx kv.Tx, rec *base.ContextRecord) (err error) {
		head, err = s.look(tx, rec)
		return err
	})
	if err == nil {
		err = put(head)
	}
	if err != nil {
		return err
	}
	for _, b := range s.branches {
		if err := s.branch(b); err != nil {
			return err
		}
	}
	if err := s.loose(); err != nil {
		return err
	}
	if err := s.named(); err != nil {
		return err
	}
	return put(&record.NativeEnd{Context: id, Messages: len(s.seen), Branches: len(s.branches)})
}

// streamer is the state of Stream. What was passed on is a tree of paths with common beginnings.
type streamer struct {
	id        pool.ID
	only      string // the one branch that is passed on; "" for all
	at        func(func(kv.Tx, *base.ContextRecord) error) error
	put       func(record.Streamed) error
	branches  []*BranchInfo
	calls     map[pool.ID][]*record.NativeCall // by message
	withCalls bool
	tags      map[string]pool.ID
	marks     map[pool.ID]string
	index     map[step]int // the number of a message after a node of the tree
	owners    []string     // for each node, the first branch with it
	seen      map[pool.ID]bool
}

// step is a message after the node parent; -1 is before the first.
type step struct {
	parent  int
	message pool.ID
}

// look reads everything but the messages.
func (s *streamer) look(tx kv.Tx, rec *base.ContextRecord) (*record.Native, error) {
	active, err := ActiveBranch(tx, s.id, rec)
	if err != nil {
		return nil, err
	}
	if s.branches, err = s.chosen(tx, rec); err != nil {
		return nil, err
	}
	if s.only != "" {
		active = &s.branches[0].Branch
	}
	if s.marks, err = Marks(tx, s.id); err != nil {
		return nil, err
	}
	if s.withCalls {
		if err := s.readCalls(tx); err != nil {
			return nil, err
		}
	}
	clear(s.tags)
	tagged, err := TagsOf(tx, s.id)
	for id, names := range tagged {
		for _, name := range names {
			s.tags[name] = id
		}
	}
	return &record.Native{ID: s.id, Title: rec.Title, Derived: rec.Derived, Renamed: rec.Named(), Gated: rec.Gated, Parent: rec.Parent, Settings: rec.Settings, AppData: rec.AppData,
		Labels: rec.Labels, Active: active.Name, Created: rec.Created, Updated: rec.Updated, Task: rec.Task}, err
}

// readCalls reads the records of all calls.
func (s *streamer) readCalls(tx kv.Tx) error {
	clear(s.calls)
	return tx.Scan(base.CallBucket, kv.Prefix(s.id[:]), func(key, value []byte) error {
		call := &record.NativeCall{}
		if err := stored.Unmarshal(value, &call.CallRecord); err != nil {
			return base.Damaged("the record of call %x: %v", key, err)
		}
		call.Message, call.Index = base.CallOfKey(key)
		s.calls[call.Message] = append(s.calls[call.Message], call)
		return nil
	})
}

// chosen returns the branches to pass on.
func (s *streamer) chosen(tx kv.Tx, rec *base.ContextRecord) ([]*BranchInfo, error) {
	if s.only == "" {
		return BranchInfos(tx, s.id, rec)
	}
	b, err := BranchOf(tx, s.id, rec, s.only)
	if err != nil {
		return nil, err
	}
	info, err := DescribeBranch(tx, s.id, rec, b)
	if err == nil {
		info.From, info.At = "", pool.ID{}
	}
	return []*BranchInfo{info}, err
}

func (s *streamer) branch(b *BranchInfo) error {
	var ids []pool.ID
	err := s.at(func(tx kv.Tx, _ *base.ContextRecord) (err error) {
		ids, err = branchstore.IDs(tx, s.id, b.Pieces)
		return Purged(tx, s.id, &b.Branch, err)
	})
	if err != nil {
		return err
	}
	line := &record.NativeBranch{ID: b.ID, Name: b.Name, System: b.SystemText, Prompt: b.PromptText, Settings: b.Settings, Sessions: b.Sessions,
		AppData: b.AppData, From: b.From, At: b.At, Created: b.Created, Tokens: b.Tokens, NativeLike: s.follow(b.Name, ids)}
	if err := s.put(line); err != nil {
		return err
	}
	for n := line.Shared; n < len(ids); {
		end := n + 1
		again := s.seen[ids[n]]
		for end < len(ids) && s.seen[ids[end]] == again {
			end++
		}
		if !again {
			n, err = s.messages(b, n, end)
		} else {
			n, err = end, s.put(record.NativeAgain(ids[n:end]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// follow adds the path of a history to the tree. It returns the branch that has its longest beginning that was there.
func (s *streamer) follow(name string, ids []pool.ID) (like record.NativeLike) {
	at := -1
	for n, id := range ids {
		next, known := s.index[step{at, id}]
		if !known {
			next = len(s.owners)
			s.index[step{at, id}] = next
			s.owners = append(s.owners, name)
		} else if like.Shared == n {
			like = record.NativeLike{Like: s.owners[next], Shared: n + 1}
		}
		at = next
	}
	return like
}

// messages passes on the messages between two positions (from 0), up to the first that came before. It returns the position after them.
func (s *streamer) messages(b *BranchInfo, from, to int) (int, error) {
	for from < to {
		var page []*pool.Entry
		err := s.at(func(tx kv.Tx, _ *base.ContextRecord) (err error) {
			page, err = ReadSome(tx, s.id, &b.Branch, from+1, min(to, from+EntryBatch), StreamBytes)
			return Purged(tx, s.id, &b.Branch, err)
		})
		if err != nil {
			return from, err
		}
		for _, e := range page {
			if s.seen[e.ID] { // a second time in this part
				return from, nil
			}
			if err := s.message(e.Message, false); err != nil {
				return from, err
			}
			from++
		}
	}
	return from, nil
}

// StreamBytes is how many bytes of messages are read at once, with the message that makes them so many.
const StreamBytes = 4 << 20

func (s *streamer) message(m *pool.Message, loose bool) error {
	s.seen[m.ID] = true
	err := s.put(&record.NativeMessage{Message: m, Loose: loose})
	for _, call := range s.calls[m.ID] {
		if err == nil {
			err = s.put(call)
		}
	}
	return err
}

// loose passes on the messages that are referred to but on no branch.
func (s *streamer) loose() error {
	var wanted []pool.ID
	for _, b := range s.branches {
		for _, at := range b.Sessions {
			wanted = append(wanted, at.Summary)
			for _, d := range at.Digests {
				wanted = append(wanted, d.Message)
			}
		}
	}
	if s.only == "" {
		for _, name := range slices.Sorted(maps.Keys(s.tags)) {
			wanted = append(wanted, s.tags[name])
		}
		wanted = append(wanted, s.marked()...)
	}
	for _, id := range wanted {
		if s.seen[id] || id == (pool.ID{}) {
			continue
		}
		var m *pool.Message
		err := s.at(func(tx kv.Tx, _ *base.ContextRecord) (err error) {
			if m, err = poolstore.Get(tx, s.id, id); err != nil || m == nil {
				return err
			}
			return FillCalls(tx, s.id, m)
		})
		if err == nil && m != nil {
			err = s.message(m, true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *streamer) marked() []pool.ID {
	return slices.SortedFunc(maps.Keys(s.marks), func(a, b pool.ID) int { return bytes.Compare(a[:], b[:]) })
}

// named passes on the tags and marks of messages that came.
func (s *streamer) named() error {
	for _, name := range slices.Sorted(maps.Keys(s.tags)) {
		if id := s.tags[name]; s.seen[id] {
			if err := s.put(&record.NativeTag{Name: name, Message: id}); err != nil {
				return err
			}
		}
	}
	for _, id := range s.marked() {
		if s.seen[id] {
			if err := s.put(&record.NativeMark{Mark: s.marks[id], Message: id}); err != nil {
				return err
			}
		}
	}
	return nil
}
