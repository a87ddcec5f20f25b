package exchange

import (
	"path"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// gptme's conversation.jsonl has a line for each message. Calls are markup in the text of answers, results are system messages. The files under branches are
// whole copies from before an edit: the beginning that they share with the conversation is the same.

const gptmeName = "gptme"

func detectGptme(h *head) bool {
	v := h.first()
	if h.array || !v.get("role").is(stringKind) || !v.get("content").is(stringKind) || parseTime(v.get("timestamp").str()) == 0 {
		return false
	}
	return !h.any(func(v value) bool {
		for k := range v.members() {
			if !gptmeMembers[k] {
				return true
			}
		}
		return false
	})
}

// gptmeMembers are the only members that a line may have: those of other programs have more.
var gptmeMembers = keys("role", "content", "timestamp", "files", "file_hashes", "pinned", "hide", "call_id", "metadata", "quiet")

var gptmeShape = shape{role: "role", time: "timestamp", model: "metadata.model", content: "content", call: "call_id",
	usage: func(m *chatctx.Message, v value) {
		tokens(m, v.pick("metadata.usage|metadata"), []string{"input_tokens"}, []string{"output_tokens"}, []string{"cache_read_tokens"}, nil)
	}}

func readGptme(r *reading) error {
	dir := path.Dir(r.file.path)
	if path.Base(dir) == "branches" || path.Base(dir) == "views" {
		if f, err := r.file.sibling(path.Join(path.Dir(dir), "conversation.jsonl")); err == nil && f != nil {
			return nil // read with the conversation, or a view of it
		}
	}
	t := r.thread(place{})
	if err := readGptmeLines(r, t, ""); err != nil {
		return err
	}
	active := t.last()
	for _, name := range r.under(path.Join(dir, "branches")) {
		branch := *r
		f, err := r.file.sibling(name)
		if err != nil {
			continue
		}
		c, err := openContent(r.ctx, f, r.limits, func(int64) {})
		if err != nil {
			r.warn(place{}, "the branch in %s cannot be read: %v", name, err)
			continue
		}
		r.file.joined = true
		branch.file, branch.buf = f, c.Reader
		err = readGptmeLines(&branch, t, branch.stem()+" ")
		c.Close()
		if err != nil {
			return err
		}
	}
	return t.handOn(&record.Incoming{Conversation: r.folderName()}, value{}, active)
}

// readGptmeLines reads a file of consecutive messages. A message that is already in the thread at the same place is the same.
func readGptmeLines(r *reading, t *thread, prefix string) error {
	n, parent, same := 0, "", prefix != ""
	return r.eachLine(func(at place, v value) error {
		n++
		if v.get("role").str() == "" {
			t.skip(at, "", "", "%s that is not a message is left out", v.kind())
			return nil
		}
		id := itoa(n)
		msgs := gptmeShape.read(v, id)
		msgs[0].Hidden = v.get("hide").bool()
		if i, known := t.seen[id]; same && known && t.sameAs(i, msgs[0]) {
			parent = id
			r.duplicated()
			return nil
		}
		same = false
		if m := msgs[0]; m.Role == pool.System && n > 1 && !v.get("pinned").bool() {
			m.Kind = "tool output"
		}
		r.whole(at, v, msgs...)
		t.add(at, prefix+id, parent, msgs...)
		t.r.shelf.put(msgs...)
		parent = prefix + id
		return nil
	})
}
