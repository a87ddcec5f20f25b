package exchange

import (
	"path/filepath"

	"github.com/chatctx/chatctx/pool"
)

// The logs.db of simonw/llm. Until 0.31 a row of responses holds a prompt, its answer and the steps between them. Since 0.32 messages have hashes as ids, each
// with that of the previous one, so that threads share their beginnings.

const llmName = "llm"

func detectLLM(h *head) bool {
	return h.db.has("responses", "prompt", "response") || h.db.has("messages", "hash", "parent_hash") && h.db.has("turns")
}

func readLLM(r *reading) error {
	attachments, err := r.db.grouped("attachments", "id")
	if err != nil {
		return err
	}
	r.db.knows("fragments", "hash")
	r.db.knows("tool_calls", "tool_id")
	r.db.knows("tool_results", "tool_id")
	r.db.knows("turns", "thread_id")
	l := &llm{r: r, attachments: attachments}
	if r.db.has("turns") && r.db.has("messages", "hash") {
		if err := l.threads(); err != nil {
			return err
		}
	}
	return l.responses()
}

type llm struct {
	r           *reading
	attachments *groups
}

// attachment reads an attachment by its id. It does not open a path on somebody's disk.
func (l *llm) attachment(id string) (pool.Part, error) {
	p := pool.Part{Type: "file_reference", Name: id, Raw: object("id", id)}
	for w, err := range l.attachments.of(id) {
		if err != nil {
			return p, err
		}
		content := w.bytes("content")
		switch {
		case len(content) > 0 && int64(len(content)) <= l.r.limits.Asset:
			p = dataPart(pool.DocumentPart, w.str("type"), filepath.Base(firstOf(w.str("path"), id)), content)
		case w.str("url") != "":
			p = mediaKind(pool.Part{Type: pool.DocumentPart, URL: w.str("url"), MediaType: w.str("type")})
		default:
			p.Name, p.Raw = filepath.Base(firstOf(w.str("path"), id)), w.object("id", "type", "path")
		}
	}
	return p, nil
}
