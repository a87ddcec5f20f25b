package window

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/pool"
)

const pointerMark = "[EXTERNALIZED: "

// keyLength is the number of hex digits of its SHA-256 that name an output that was put aside.
const keyLength = 16

// pointer returns the text that stands for an output that was put aside.
func pointer(key, kind, summary string, size int) string {
	return fmt.Sprintf("%s%s | %s | %s, %d bytes]", pointerMark, key, kind, clip(summary, 320), size)
}

// keyOf returns the key of an output: the beginning of the SHA-256 of its bytes, under which the store has it if it is large.
func keyOf(content string, r *pool.Result) string {
	if r != nil && r.SHA256 != (pool.Hash{}) {
		return hex.EncodeToString(r.SHA256[:])[:keyLength]
	}
	h := sha256.Sum256([]byte(content))
	return hex.EncodeToString(h[:])[:keyLength]
}

// partKey returns the key and the size of an image or a document, "" and 0 for one that is only an address.
func partKey(p *pool.Part) (key string, size int) {
	switch {
	case p.SHA256 != (pool.Hash{}):
		return hex.EncodeToString(p.SHA256[:])[:keyLength], int(p.Size)
	case len(p.Data) > 0:
		return keyOf(string(p.Data), nil), len(p.Data)
	}
	return "", 0
}

// ArtifactTool is the tool with which a model reads an output that was put aside. ReadArtifact answers its calls.
var ArtifactTool = record.Tool{
	Name:        "read_artifact",
	Description: "Reads a tool output or attachment that was replaced by [EXTERNALIZED: KEY | ...]. Gives one page at a time.",
	Schema: json.RawMessage(`{"type":"object","properties":{"key":{"type":"string","description":"KEY as it stands in the brackets"},` +
		`"page":{"type":"integer","minimum":1,"description":"which page, from 1"}},"required":["key"]}`),
	Repeatable: true,
}

// OfferArtifacts returns an Enhancer that adds ArtifactTool if the draft holds a pointer. It runs after Outputs.
func OfferArtifacts() enhancer.Enhancer {
	return enhancer.Func("offer", func(ctx context.Context, d *chatctx.Draft) error {
		for _, m := range d.Messages {
			if m.Result != nil && strings.Contains(messageText(m.Message), pointerMark) {
				return AddTools(ArtifactTool).Enhance(ctx, d)
			}
		}
		return nil
	})
}

// pageSize is the size of a page in bytes, less than LargeOutput, so that a page is not put aside itself.
const pageSize = 6 << 10

// ReadArtifact answers a call of ArtifactTool: it returns one page of the output, and says how many there are. For an unknown key or bad arguments text tells
// the model what is wrong, and failed is true.
func ReadArtifact(ctx context.Context, from enhancer.ArtifactStore, arguments json.RawMessage) (text string, failed bool, err error) {
	var a struct {
		Key  string `json:"key"`
		Page int    `json:"page"`
	}
	if json.Unmarshal(arguments, &a) != nil || a.Key == "" {
		return "key is missing: give the KEY that stands in the brackets", true, nil
	}
	found, err := from.Find(ctx, a.Key)
	if err != nil {
		return "", false, err
	}
	if len(found) != 1 {
		return fmt.Sprintf("%d outputs have the key %s; give more of it, as it stands in the brackets", len(found), a.Key), true, nil
	}
	text, failed = page(found[0].Data, max(a.Page, 1))
	return text, failed, nil
}

// page returns page n of data, after a line that says which of how many pages it is.
func page(data []byte, n int) (text string, failed bool) {
	if !utf8.Valid(data) {
		return fmt.Sprintf("binary content, %d bytes; it cannot be shown as text", len(data)), true
	}
	pages := splitPages(string(data))
	if n > len(pages) {
		return fmt.Sprintf("there are only %d pages", len(pages)), true
	}
	return fmt.Sprintf("[page %d of %d]\n%s", n, len(pages), pages[n-1]), false
}

// splitPages cuts a text into pages, at a line end if one is near.
func splitPages(text string) []string {
	pages := []string{}
	for len(text) > pageSize {
		cut := pageSize
		if at := strings.LastIndexByte(text[pageSize/2:pageSize], '\n'); at >= 0 {
			cut = pageSize/2 + at + 1
		}
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		pages = append(pages, text[:cut])
		text = text[cut:]
	}
	return append(pages, text)
}

// keep gives an artifact to the program's store and reports whether it may be put aside. If the store fails, a note says why.
func (s *steps) keep(m *chatctx.DraftMessage, aside func() (enhancer.Artifact, error)) bool {
	if aside == nil || s.o.Artifacts == nil {
		return true
	}
	a, err := aside()
	if err == nil {
		a.Message, a.Key = m.ID, fullKey(a.Data)
		err = s.o.Artifacts.Keep(s.ctx, a)
	}
	if err != nil {
		s.d.Notes = append(s.d.Notes, chatctx.Note{Step: "tools", Message: m.ID, What: "not put aside: " + err.Error()})
	}
	return err == nil
}

// attachment returns a function that reads an image or a document.
func (s *steps) attachment(p *pool.Part, tool string) func() (enhancer.Artifact, error) {
	part := *p
	return func() (enhancer.Artifact, error) {
		a := enhancer.Artifact{Tool: tool, Kind: enhancer.Binary, MediaType: part.MediaType, Name: part.Name, Data: part.Data}
		var err error
		if a.Data == nil && s.d.Artifact != nil {
			a.Data, err = s.d.Artifact(part.SHA256)
		}
		a.Size = len(a.Data)
		return a, err
	}
}

// BranchArtifacts returns the ArtifactStore of a branch: outputs that are larger than SmallOutput or binary, and all images and documents. Its messages hold
// them, so Keep does nothing.
func BranchArtifacts(c *chatctx.ChatContext, branchName string) enhancer.ArtifactStore {
	return branchArtifacts{c, branchName}
}

type branchArtifacts struct {
	c      *chatctx.ChatContext
	branch string
}

func (b branchArtifacts) Keep(context.Context, enhancer.Artifact) error { return nil }

func (b branchArtifacts) List(ctx context.Context) ([]enhancer.Artifact, error) {
	snapshot, err := b.c.Snapshot(ctx, b.branch)
	if err != nil {
		return nil, err
	}
	var out []enhancer.Artifact
	seen := map[string]bool{}
	names := map[string]string{}
	for e, err := range snapshot.Entries(ctx, 1, 0) {
		if err != nil {
			return nil, err
		}
		for i := range e.Calls {
			names[e.Calls[i].ID] = e.Calls[i].Tool
		}
		for _, a := range artifactsOf(e.Message, names) {
			if !seen[a.Key] {
				seen[a.Key] = true
				out = append(out, a)
			}
		}
	}
	return out, nil
}

func (b branchArtifacts) Find(ctx context.Context, key string) ([]enhancer.Artifact, error) {
	key = strings.ToLower(strings.TrimSpace(key))
	if len(key) < 4 {
		return nil, nil
	}
	all, err := b.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []enhancer.Artifact
	for _, a := range all {
		if !strings.HasPrefix(a.Key, key) {
			continue
		}
		if a.Data == nil {
			if a.Data, a.MediaType, err = readArtifact(ctx, b.c, a); err != nil {
				return nil, err
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// artifactsOf returns the artifacts of one message. names maps the calls so far to their tools.
func artifactsOf(m *pool.Message, names map[string]string) []enhancer.Artifact {
	var out []enhancer.Artifact
	parts, tool := m.Content, ""
	if r := m.Result; r != nil {
		tool = r.Tool
		if tool == "" {
			tool = names[r.RequestID]
		}
		content := r.Text
		if r.JSON != nil {
			content = string(r.JSON)
		}
		if len(r.Parts) == 0 && (len(content) > SmallOutput || isBinary(content)) {
			out = append(out, enhancer.Artifact{Key: fullKey([]byte(content)), Message: m.ID, Tool: tool, Kind: KindOf(content, r.IsError), Size: len(content), Data: []byte(content)})
		}
		parts = r.Parts
	}
	for i := range parts {
		p := &parts[i]
		switch {
		case p.Type == pool.TextPart && m.Result != nil && (len(p.Text) > SmallOutput || isBinary(p.Text)):
			out = append(out, enhancer.Artifact{Key: fullKey([]byte(p.Text)), Message: m.ID, Tool: tool, Kind: KindOf(p.Text, false), Size: len(p.Text), Data: []byte(p.Text)})
		case (p.Type == pool.ImagePart || p.Type == pool.DocumentPart) && p.SHA256 != (pool.Hash{}):
			out = append(out, enhancer.Artifact{Key: hex.EncodeToString(p.SHA256[:]), Message: m.ID, Tool: tool, Kind: enhancer.Binary, MediaType: p.MediaType, Name: p.Name, Size: int(p.Size)})
		}
	}
	return out
}

func fullKey(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

func readArtifact(ctx context.Context, c *chatctx.ChatContext, a enhancer.Artifact) ([]byte, string, error) {
	var h pool.Hash
	if _, err := hex.Decode(h[:], []byte(a.Key)); err != nil {
		return nil, "", err
	}
	data, media, err := c.Store().Artifact(ctx, h)
	if a.MediaType != "" {
		media = a.MediaType
	}
	return data, media, err
}
