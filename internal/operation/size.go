package operation

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/charset"
	_ "github.com/chatctx/chatctx/internal/charset/eastasian" // artifacts may be texts in these
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

func init() {
	Register(Group{Heading: "The window", Of: sizeOperations})
	Register(Group{Heading: "The window", Command: "artifact", Does: "large tool outputs and attachments, which can be put aside", Of: artifactOperations})
}

func sizeOperations() []*Operation {
	return []*Operation{
		Define("tokens.count", "GET", Read, "show how large the branch is for its model, message by message, and its limit", measure).Caching().Fails(asking...).
			As("tokens", "chatctx tokens\nchatctx tokens --model claude-sonnet-4-5\nchatctx tokens --encoding o200k_base\nchatctx tokens --provider anthropic --json").
			With("It counts the next request, as send would make it, without the messages that earlier steps left out. If a compaction is due, the count is an upper bound, marked ≤. Counts are exact for models whose encoding is known, else an approximation that reported figures correct; the output says which. With --provider it asks the provider's own counter, if there is one, about the request that send would send."),
	}
}

func artifactOperations() []*Operation {
	return []*Operation{
		Define("artifacts.list", "GET", Read, "list the large tool outputs and the attachments of the branch", listArtifacts).As("artifact ls", "chatctx artifact ls"),
		Define("artifacts.show", "GET", Read, "print an output or attachment by the KEY of its pointer", showArtifact).As("artifact show", "chatctx artifact show 2cf24dba5fb0a30e").
			With("KEY is the key in [EXTERNALIZED: KEY | …]; its first 4 digits or more are enough. Binary content goes to a file or a pipe, not to a terminal."),
	}
}

// BranchMeasuring says for whom a branch is measured.
type BranchMeasuring struct {
	Target
	Whom
	Encoding string `json:"encoding,omitempty" flag:"encoding" doc:"count by this {ENCODING}: o200k_base, cl100k_base, p50k_base, p50k_edit, r50k_base or gpt2; else by the setting encoding, else by the model's"`
}

// BranchSize is a branch's size.
type BranchSize struct {
	Total int `json:"total_tokens"`
	contract.Window
	Overhead int           `json:"overhead"` // prompts, tools and the conversation as a whole
	Summary  int           `json:"summary"`
	Encoding string        `json:"encoding"`
	Model    string        `json:"model"`
	Provider *int64        `json:"provider_tokens,omitempty"`
	Messages []MessageSize `json:"messages"`

	Next      *Foreseen `json:"-"`
	Uncounted bool      `json:"-"` // the provider was asked, and counts none
}

// MessageSize is a message's size.
type MessageSize struct {
	ID       chatctx.ID `json:"id"`
	Role     pool.Role  `json:"role"`
	Tokens   int        `json:"tokens"`
	Reported *int64     `json:"reported_tokens,omitempty"`
	Preview  string     `json:"preview"`
}

func measure(r *Request, in *BranchMeasuring) (v BranchSize, err error) {
	c, name, err := r.branchOf(in.Target)
	if err != nil {
		return v, err
	}
	t := r.turnOn(c, name)
	if in.Encoding != "" {
		t.Settings["encoding"] = jsontree.Quote(in.Encoding)
	}
	next, err := r.foresee(t)
	if err != nil {
		return v, err
	}
	v = sizeOf(next)
	if in.Provider == "" {
		return v, nil
	}
	n, err := t.Count(r.Ctx)
	if errors.Is(err, wire.ErrNoCount) {
		v.Uncounted = true
		return v, nil
	}
	v.Provider = &n
	return v, err
}

// sizeOf returns the figures of a request, message by message.
func sizeOf(next *Foreseen) BranchSize {
	d := next.Draft
	of, fixed := window.Of(next.Request).Window.Shares(d)
	v := BranchSize{Total: window.Of(next.Request).Forecast.Tokens, Window: contract.WindowOf(window.Of(next.Request).Forecast), Overhead: fixed, Encoding: string(window.Of(next.Request).Window.Counter.Model.Encoding),
		Model: window.Of(next.Request).Options.Model, Messages: []MessageSize{}, Next: next}
	line := func(m *chatctx.DraftMessage) {
		l := MessageSize{ID: m.ID, Role: m.Role, Tokens: of[m.ID], Preview: tokens.Preview(m.Message, 60)}
		if m.Role == pool.Assistant {
			l.Reported = m.Meta.OutputTokens
		}
		v.Messages = append(v.Messages, l)
	}
	if d.Summary != nil {
		v.Summary = of[d.Summary.ID]
		line(d.Summary)
	}
	for _, m := range d.Messages {
		line(m)
	}
	return v
}

// Artifact is an output or an attachment.
type Artifact struct {
	Key       string     `json:"key"`
	Message   chatctx.ID `json:"message"`
	Kind      string     `json:"kind"`
	Tool      string     `json:"tool,omitempty"`
	MediaType string     `json:"media_type,omitempty"`
	Name      string     `json:"name,omitempty"`
	Size      int        `json:"size"`
}

// ArtifactContent is an output or an attachment with its bytes: text, or data.
type ArtifactContent struct {
	Artifact
	Text  *string `json:"text,omitempty"`
	Data  string  `json:"data,omitempty"`
	Bytes []byte  `json:"-"`
}

func artifactOf(a *enhancer.Artifact) Artifact {
	return Artifact{Key: a.Key, Message: a.Message, Kind: string(a.Kind), Tool: a.Tool, MediaType: a.MediaType, Name: a.Name, Size: a.Size}
}

// ArtifactListing names the branch.
type ArtifactListing struct{ Target }

func listArtifacts(r *Request, in *ArtifactListing) (out List[Artifact], err error) {
	c, snap, err := r.snapshot(in.Target)
	if err != nil {
		return out, err
	}
	in.Branch = snap.Info.Name
	list, err := window.BranchArtifacts(c, snap.Info.Name).List(r.Ctx)
	return ListEach(list, err, func(a enhancer.Artifact) Artifact { return artifactOf(&a) })
}

// ArtifactKey names an output or an attachment of a branch.
type ArtifactKey struct {
	Target
	Key string `json:"key" arg:"KEY"`
}

func showArtifact(r *Request, in *ArtifactKey) (v ArtifactContent, err error) {
	c, snap, err := r.snapshot(in.Target)
	if err != nil {
		return v, err
	}
	found, err := window.BranchArtifacts(c, snap.Info.Name).Find(r.Ctx, in.Key)
	if err != nil {
		return v, err
	}
	if len(found) == 0 {
		return v, base.NotFound("artifact", in.Key)
	}
	if len(found) > 1 {
		keys := make([]string, len(found))
		for i := range found {
			keys[i] = found[i].Key
		}
		return v, base.Ambiguous("artifact", in.Key, keys, 0)
	}
	a := &found[0]
	v = ArtifactContent{Artifact: artifactOf(a), Bytes: a.Data}
	decoded, isText := charset.Decode(a.Data, a.MediaType)
	if isText && (a.MediaType == "" || strings.HasPrefix(a.MediaType, "text/")) {
		v.Text = &decoded.Text
	} else {
		v.Data = base64.StdEncoding.EncodeToString(a.Data)
	}
	return v, nil
}
