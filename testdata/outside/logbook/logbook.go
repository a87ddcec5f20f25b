// Package logbook imports conversations from logbooks, files of a program that does not exist:
//
//	LOGBOOK Rosalind
//	08:15 user Is the bridge open?
//	08:16 assistant Until noon.
package logbook

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/chatctx/exchange"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

const begins = "LOGBOOK "

func init() {
	exchange.Register(exchange.Format{Name: "logbook", Read: read, Detect: func(beginning []byte) bool { return bytes.HasPrefix(beginning, []byte(begins)) }})
}

func read(r *exchange.Reading) error {
	in := &record.Incoming{}
	lines := bufio.NewReader(r.Content()) // a Scanner would end at a line of 64 KB
	for n := 1; ; n++ {
		text, err := lines.ReadString('\n')
		if err != nil && err != io.EOF {
			return err
		}
		add(r, in, n, strings.TrimSpace(text))
		if err == io.EOF {
			break
		}
	}
	in.Branches = []record.IncomingBranch{{Name: "main", Leaf: len(in.Nodes)}}
	return r.Emit(in)
}

// add adds a line to a conversation.
func add(r *exchange.Reading, in *record.Incoming, n int, text string) {
	if name, first := strings.CutPrefix(text, begins); first && n == 1 {
		in.Conversation, in.Title = name, name
		return
	}
	if text == "" {
		return
	}
	at, rest, _ := strings.Cut(text, " ")
	who, words, ok := strings.Cut(rest, " ")
	if role := pool.Role(who); !ok || role != pool.User && role != pool.Assistant {
		r.Skip(1, n, "a line of neither the user nor the assistant")
		return
	}
	// A node's id tells the message from others when the file is read again, and has grown.
	in.Nodes = append(in.Nodes, record.Node{ID: at + "/" + strconv.Itoa(n), Parent: len(in.Nodes), Message: pool.NewText(pool.Role(who), words)})
}
