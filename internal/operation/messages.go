package operation

import (
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

func init() { Register(Group{Heading: "Messages", Of: messageOperations}) }

func messageOperations() []*Operation {
	const at = "/contexts/{context}/branches/{branch}"
	return []*Operation{
		Define("messages.list", "GET "+at+"/messages", Read, "list messages of a branch: by positions from either end, by a range A..B, or around one message", listMessages),
		Define("messages.get", "GET "+at+"/messages/{message}", Read, "get one message", getMessage),
		Define("messages.add", "", Write, "put a message at the end of the branch", addMessage).
			As("add", "chatctx add user \"Where should we go in May?\"\ngit diff | chatctx add user - --key diff-42").
			With("ROLE is system, user, assistant or tool. If there is no store or no conversation yet, add makes one. The summary of a tool result is its short form, which is sent in its place when results are shortened; shorten sets it later."),
		Define("messages.append", "POST "+at+"/messages", Write, "add messages at the end of a branch", appendMessages),
		Define("artifacts.get", "GET /artifacts/{sha256}", Read, "get the bytes of an image, a document or a long output", getArtifact).Bytes(),
		Define("artifacts.put", "POST /artifacts", Write, "store bytes for messages to refer to", putArtifact).TakesBytes(),
	}
}

type messagesParams struct {
	Target
	From   int    `json:"from,omitempty" doc:"the first position; 0 means 1, and -1 is the last one. If it is after to, the messages come in reverse"`
	To     int    `json:"to,omitempty" doc:"the last position, counted as in from; 0 means the last one of the branch"`
	Range  string `json:"range,omitempty" doc:"A..B instead of positions: the messages after A, up to B and including it"`
	Around string `json:"around,omitempty" doc:"a message instead of positions: the list has limit messages around it"`
	Limit  int    `json:"limit,omitempty" doc:"the most messages, up to 1000; 0 means 100"`
}

// page is a part of a branch.
type page struct {
	Context  chatctx.ID       `json:"context"`
	Branch   string           `json:"branch"`
	Revision uint64           `json:"revision"`
	Messages int              `json:"messages"` // of the whole branch
	Items    []*chatctx.Entry `json:"items"`
	Next     int              `json:"next,omitempty"` // the position to go on from; 0 if there are no more
	Queued   []*chatctx.Entry `json:"queued"`         // messages that wait for a place at the end; only with the last message
}

func listMessages(r *Request, in *messagesParams) (page, error) {
	limit, err := limitOf(in.Limit)
	if err != nil {
		return page{}, err
	}
	c, snap, err := r.snapshot(in.Target)
	if err != nil {
		return page{}, err
	}
	snap, from, to, err := in.stretch(r, snap, limit)
	if err != nil {
		return page{}, err
	}
	r.Revision = &snap.Info.Revision
	out := page{Context: c.ID, Branch: snap.Info.Name, Revision: snap.Info.Revision, Messages: snap.Len(), Items: []*chatctx.Entry{}, Queued: []*chatctx.Entry{}}
	if from > 0 && to > 0 {
		step := 1
		if from > to {
			step = -1
		}
		last, size, err := snap.Within(r.Ctx, from, from+step*min((to-from)*step, limit-1), r.Page)
		if err == nil {
			err = r.hold(size)
		}
		if err == nil {
			out.Items, err = snap.Page(r.Ctx, from, last)
		}
		if err != nil {
			return page{}, err
		}
		if last != to {
			out.Next = last + step
		}
	}
	if n := len(out.Items); n == 0 && snap.Len() == 0 || n > 0 && max(out.Items[0].Position, out.Items[n-1].Position) == snap.Len() {
		queued, err := view.Queued(r.Ctx, base.ContextOf(c.Store(), c.ID), snap.Info.Name)
		if err != nil {
			return page{}, err
		}
		out.Queued = contract.Entries(queued)
	}
	return out, nil
}

// stretch returns the requested branch and positions; 0, 0 for none.
func (in *messagesParams) stretch(r *Request, snap *chatctx.Snapshot, limit int) (*chatctx.Snapshot, int, int, error) {
	n := snap.Len()
	if (in.Range != "" && in.Around != "") || (in.Range+in.Around != "" && in.From|in.To != 0) {
		return nil, 0, 0, base.Invalid("messages.list takes from and to, range, or around")
	}
	switch {
	case in.Range != "":
		part, err := snap.Range(r.Ctx, record.Ref(in.Range))
		if err != nil {
			return nil, 0, 0, err
		}
		if part == nil {
			return nil, 0, 0, base.Invalid("%q is no range A..B", in.Range)
		}
		if part.To < part.From {
			return part.Snapshot, 0, 0, nil
		}
		return part.Snapshot, part.From, part.To, nil
	case in.Around != "":
		_, position, _, err := snap.Locate(r.Ctx, record.Ref(in.Around))
		if err == nil && position == 0 {
			_, err = snap.Place(r.Ctx, record.Ref(in.Around)) // its error says where the message is
		}
		if err != nil {
			return nil, 0, 0, err
		}
		from := max(position-limit/2, 1)
		return snap, from, min(from+limit-1, n), nil
	}
	fromEnd := func(p, otherwise int) int {
		switch {
		case p == 0:
			return otherwise
		case p < 0:
			return max(n+1+p, 1)
		}
		return p
	}
	from, to := fromEnd(in.From, 1), fromEnd(in.To, n)
	if n == 0 || from > n && to > n {
		return snap, 0, 0, nil
	}
	return snap, min(from, n), to, nil
}

type messageParams struct {
	Target
	Message string `json:"message" doc:"the message: its id, a tag, @, @-2, u3 …"`
}

func getMessage(r *Request, in *messageParams) (*chatctx.Entry, error) {
	_, snap, err := r.snapshot(in.Target)
	if err != nil {
		return nil, err
	}
	id, _, size, err := snap.Locate(r.Ctx, record.Ref(in.Message))
	if err == nil {
		err = r.hold(size)
	}
	if err != nil {
		return nil, err
	}
	return snap.Find(r.Ctx, record.RefTo(id))
}

type appendParams struct {
	Change
	Messages []*chatctx.Message `json:"messages" doc:"the messages; each needs only role and content, tool_calls or tool_result"`
}

func appendMessages(r *Request, in *appendParams) (List[contract.Placed], error) {
	if err := ready(in.Messages); err != nil {
		return List[contract.Placed]{}, err
	}
	if err := r.mayAppend(in.Target, in.Messages); err != nil {
		return List[contract.Placed]{}, err
	}
	done, err := r.commit(in.Change, func(b *chatctx.Batch) {
		b.AppendWith(chatctx.AppendOptions{Key: in.Key, Copies: true}, in.Messages...)
	})
	if err != nil {
		return List[contract.Placed]{}, err
	}
	r.Revision = &done.Last().Revision // for a repeated key, the result of the first request
	return ListOf(contract.PlacedOf(done)), nil
}

// Adding is a message as it is typed. The face makes Message of it.
type Adding struct {
	Target
	Role   pool.Role `json:"role" arg:"ROLE"`
	Text   string    `json:"text,omitempty" arg:"[TEXT|-]"`
	Image  []string  `json:"-" flag:"image" doc:"an image {FILE}, after the text; may be given again"`
	File   []string  `json:"-" flag:"file" doc:"a {FILE} of any kind, after the text; may be given again"`
	Call   string    `json:"-" flag:"answers" old:"call" doc:"with the role tool: the {CALLID} of the call that this answers"`
	Error  bool      `json:"-" flag:"error" doc:"the tool failed"`
	Short  string    `json:"-" flag:"summary" doc:"the summary's {TEXT}; - for standard input"`
	Model  string    `json:"-" flag:"written-by" old:"model m" doc:"the {MODEL} that wrote the message"`
	Key    string    `json:"-" flag:"key" doc:"store once for this {KEY} within 24 hours, however often the command is run"`
	Expect *uint64   `json:"-" flag:"expect" doc:"only while the branch has this {REVISION}: it stops when somebody else adds to it"`
	RawInput
	Message *chatctx.Message `json:"-"`
}

// Options returns what the message is added with.
func (in *Adding) Options() chatctx.AppendOptions {
	return chatctx.AppendOptions{Key: in.Key, Expect: in.Expect}
}

// AddedMessage is a message that was put on a branch, or only where it would be if it was there already.
type AddedMessage struct {
	contract.Placed
	None []contract.Where `json:"-" when:""`

	Done *record.Committed `json:"-"`
}

func addMessage(r *Request, in *Adding) (v AddedMessage, err error) {
	b := r.Store.Begin(in.Context, in.Branch)
	b.AppendWith(in.Options(), in.Message)
	done, err := b.Commit(r.Ctx)
	if err != nil {
		return v, err
	}
	v.Done, r.Done = done, done
	if lines := contract.PlacedOf(done); len(lines) > 0 {
		v.Placed = lines[0]
	} else {
		v.None = []contract.Where{contract.WhereOf(done)}
	}
	if v.Again {
		r.Done = nil
	}
	return v, nil
}

// mayAppend refuses messages that decide about calls or answer them, unless the caller may do that.
func (r *Request) mayAppend(at Target, messages []*chatctx.Message) error {
	for _, m := range messages {
		for i := range m.Calls {
			c := &m.Calls[i]
			if c.Status != "" && c.Status != pool.Pending || c.Execution != "" && c.Execution != pool.NotRun {
				if err := r.need(Decide); err != nil {
					return err
				}
			}
		}
		if m.Result == nil {
			continue
		}
		if err := r.need(Run); err != nil {
			return err
		}
		call, err := r.Store.Call(r.Ctx, at.Context, at.Branch, record.CallRef(m.Result.RequestID))
		if errors.Is(err, chatctx.ErrNotFound) {
			continue // its call comes with it, or is not on the branch
		}
		if err != nil || call.Status == pool.Pending {
			if err := r.need(Decide); err != nil { // an answer skips the decision
				return err
			}
		}
	}
	return nil
}

// ready repairs JSON values that are not valid text.
func ready(messages []*chatctx.Message) error {
	for _, m := range messages {
		if m == nil {
			return base.Invalid("a message is null")
		}
		for i := range m.Calls { // an object that came as a string has escapes of its own
			m.Calls[i].Arguments = jsontree.Unwrapped(m.Calls[i].Arguments)
		}
		poolstore.MakeWhole(m)
	}
	return nil
}

type artifactParams struct {
	SHA256 string `json:"sha256" doc:"the SHA-256 of the bytes, in hexadecimal"`
}

// written is what a method that writes bytes reports at its end.
type written struct {
	MediaType string `json:"media_type"`
	Name      string `json:"name,omitempty"`
	Size      int64  `json:"size"`
}

func getArtifact(r *Request, in *artifactParams) (written, error) {
	var h pool.Hash
	raw, err := hex.DecodeString(in.SHA256)
	if err != nil || len(raw) != len(h) {
		return written{}, base.Invalid("sha256 has to be 64 hexadecimal digits")
	}
	copy(h[:], raw)
	info, err := view.ArtifactParts(r.Ctx, base.Of(r.Store), h, func(info pool.ArtifactInfo) (io.Writer, error) { return r.Write(info.MediaType, "") })
	return written{MediaType: info.MediaType, Size: info.Size}, err
}

type putParams struct {
	Keyed
	MediaType string `json:"media_type,omitempty" doc:"the media type; by default the server detects it from the bytes"`
}

// stored describes bytes that are in the store.
type stored struct {
	SHA256    string `json:"sha256"`
	MediaType string `json:"media_type"`
	Size      int    `json:"size"`
}

// mostArtifact is the largest artifact that can be uploaded by itself, in bytes.
const mostArtifact = 64 << 20

// mostMediaType is the longest media type, in bytes.
const mostMediaType = 255

func putArtifact(r *Request, in *putParams) (stored, error) {
	data, err := r.Whole(mostArtifact)
	if err != nil {
		return stored{}, err
	}
	if len(data) == 0 {
		return stored{}, base.Invalid("artifacts.put needs bytes")
	}
	if _, _, err := mime.ParseMediaType(in.MediaType); in.MediaType != "" && (err != nil || len(in.MediaType) > mostMediaType || strings.ContainsFunc(in.MediaType, unicode.IsControl)) {
		return stored{}, base.Invalid("media_type has to be like image/png, of at most %d bytes", mostMediaType)
	}
	if in.MediaType == "" {
		in.MediaType, _, _ = strings.Cut(http.DetectContentType(data), ";")
	}
	h, err := r.Store.PutArtifact(r.Ctx, data, in.MediaType)
	if err != nil {
		return stored{}, err
	}
	return stored{hex.EncodeToString(h[:]), in.MediaType, len(data)}, nil
}
