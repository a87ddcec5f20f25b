package tokens

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// These tokens are added to those of the text.
const (
	PerMessage      = 4
	PerCall         = 10
	PerConversation = 10
)

// Cache keeps counts by message and encoding. A ChatContext is one.
type Cache interface {
	// Counts returns the count of each id, 0 if none is kept.
	Counts(ctx context.Context, encoding string, ids []pool.ID) ([]int, error)
	// SetCounts keeps counts. It may lose them: they are counted again.
	SetCounts(ctx context.Context, encoding string, ids []pool.ID, counts []int) error
}

// Sent says which parts of a branch go to a provider. Package turn makes it from the adapters.
type Sent struct {
	// Name identifies these rules in the keys of kept counts.
	Name string
	// Read returns a message as it is sent, nil if nothing of it is. artifact may be nil.
	Read func(m *pool.Message, artifact func(pool.Hash) ([]byte, error)) *pool.Message
	// Beside are the texts that each request has in addition to those of a draft.
	Beside []string
}

// Counter counts for one model. It is not safe for concurrent use.
type Counter struct {
	Model   Model
	sent    *Sent
	formula formula
	cache   Cache
	texts   map[pool.ID]int // counts of system prompts and tool definitions, which are not messages
}

// NewCounter returns a Counter for a model that counts what sent says, or, if that is nil, all that any provider takes. cache may be nil.
func NewCounter(model string, sent *Sent, cache Cache) *Counter {
	m := ForModel(model)
	return &Counter{Model: m, sent: sent, formula: formulaOf(m), cache: cache, texts: map[pool.ID]int{}}
}

// Text returns the number of tokens of a text alone.
func (c *Counter) Text(text string) int { return c.Model.Encoding.Count(text) }

// Message returns the tokens of the parts of a message that are sent, with its overheads. read returns the bytes of artifacts and may be nil. A message that is
// never sent has 0.
func (c *Counter) Message(m *pool.Message, read func(pool.Hash) ([]byte, error)) int {
	if m.Unsent {
		return 0
	}
	if c.sent != nil && !sameForAll(m) {
		if m = c.sent.Read(m, read); m == nil {
			return 0
		}
	}
	n := PerMessage
	for i := range m.Calls {
		n += PerCall + c.Text(m.Calls[i].Tool) + c.Text(string(m.Calls[i].Arguments))
	}
	switch r := m.Result; {
	case r == nil, !poolstore.Speaks(r): // if the result says nothing, the content is sent
		n += c.parts(m.Content, read)
	case len(r.Parts) > 0:
		n += c.parts(r.Parts, read)
	case r.JSON != nil:
		n += c.Text(string(r.JSON))
	default:
		n += c.Text(r.Text)
	}
	return n
}

// sameForAll reports whether every provider gets the message with the same words.
func sameForAll(m *pool.Message) bool {
	if m.Result != nil && poolstore.Speaks(m.Result) {
		return len(m.Result.Parts) == 0
	}
	for i := range m.Content {
		if t := m.Content[i].Type; t != pool.TextPart && t != pool.CallPart {
			return false
		}
	}
	return m.Role != pool.ToolRole
}

func (c *Counter) parts(parts []pool.Part, read func(pool.Hash) ([]byte, error)) int {
	n := 0
	for i := range parts {
		p := &parts[i]
		switch p.Type {
		case pool.TextPart, pool.ThinkingPart:
			n += c.Text(p.Text)
		case pool.ImagePart, pool.DocumentPart:
			n += c.formula.media(p, partBytes(p, read), c.Model.Encoding)
		case pool.CallPart:
		case pool.CompactionPart:
			n += c.compaction(p.Raw)
		default:
			n += c.Text(string(p.Raw))
		}
	}
	return n
}

// What a provider encrypts is in base64, with cipherFrame bytes around it, and takes a token for cipherPerToken bytes of it.
const (
	cipherFrame    = 650
	cipherPerToken = 4
)

// compaction counts an item with which a provider stands for what came before. Only the provider can read what it encrypted, so its tokens follow from its size.
func (c *Counter) compaction(raw []byte) int {
	var v struct {
		Encrypted string `json:"encrypted_content"`
	}
	_ = json.Unmarshal(raw, &v) // another item has none
	text := strings.Replace(string(raw), v.Encrypted, "", 1)
	return c.Text(text) + max(len(v.Encrypted)*3/4-cipherFrame, 0)/cipherPerToken
}

func partBytes(p *pool.Part, read func(pool.Hash) ([]byte, error)) []byte {
	if p.Data != nil || read == nil || p.SHA256 == (pool.Hash{}) {
		return p.Data
	}
	data, err := read(p.SHA256)
	if err != nil {
		return nil // the adapter reports it when it needs the bytes
	}
	return data
}

// Fill sets Tokens of each message of the draft that has none, also of the summary: from the cache, else by counting, and then it keeps the count. It also
// counts the prompts and tools for Sizes, and marks the messages that no provider gets as Left.
func (c *Counter) Fill(ctx context.Context, d *chatctx.Draft) error {
	messages := d.Messages
	if d.Summary != nil {
		messages = append([]*chatctx.DraftMessage{d.Summary}, messages...)
	}
	c.leaveOut(d)
	alike, special := missing(messages)
	if err := c.fill(ctx, d, string(c.Model.Encoding), alike); err != nil {
		return err
	}
	if err := c.fill(ctx, d, c.special(), special); err != nil {
		return err
	}
	return c.fillTexts(ctx, d)
}

// special returns the key of counts that depend on more than the encoding.
func (c *Counter) special() string {
	key := string(c.Model.Encoding) + "+" + c.formula.name
	if c.sent != nil {
		key += "+" + c.sent.Name
	}
	return key
}

// missing returns the messages without a count, separated by whether every provider gets the same words.
func missing(messages []*chatctx.DraftMessage) (alike, special []*chatctx.DraftMessage) {
	for _, m := range messages {
		switch {
		case m.Tokens != 0 || unsent(m):
		case sameForAll(m.Message):
			alike = append(alike, m)
		default:
			special = append(special, m)
		}
	}
	return alike, special
}

func unsent(m *chatctx.DraftMessage) bool { return m.Unsent || m.Queued || m.Left }

func (c *Counter) fill(ctx context.Context, d *chatctx.Draft, encoding string, messages []*chatctx.DraftMessage) error {
	ids := make([]pool.ID, len(messages))
	for i, m := range messages {
		ids[i] = m.ID
	}
	return c.keep(ctx, encoding, ids, func(i int) int { return c.Message(messages[i].Message, d.Artifact) }, func(i, n int) { messages[i].Tokens = n })
}

// keep calls use with the count of each id: the one that is kept, or else that of count, which it then keeps.
func (c *Counter) keep(ctx context.Context, encoding string, ids []pool.ID, count func(i int) int, use func(i, n int)) error {
	if len(ids) == 0 {
		return nil
	}
	known := make([]int, len(ids))
	if c.cache != nil {
		var err error
		if known, err = c.cache.Counts(ctx, encoding, ids); err != nil {
			return err
		}
	}
	var newIDs []pool.ID
	var counts []int
	for i, n := range known {
		if n == 0 {
			n = count(i)
			if n > 0 && ids[i] != (pool.ID{}) {
				newIDs, counts = append(newIDs, ids[i]), append(counts, n)
			}
		}
		use(i, n)
	}
	if c.cache == nil || len(newIDs) == 0 {
		return nil
	}
	return c.cache.SetCounts(ctx, encoding, newIDs, counts)
}

// textID returns a text's id for the cache, made from its hash, so that the same text has the same id.
func textID(text string) pool.ID {
	h := sha256.Sum256([]byte(text))
	id := pool.ID(h[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of version 8, which no message has
	return id
}

// fillTexts counts the draft's prompts and tools.
func (c *Counter) fillTexts(ctx context.Context, d *chatctx.Draft) error {
	var texts []string
	var ids []pool.ID
	for _, t := range append([]string{d.System, d.Prompt, toolText(d.Tools)}, c.beside()...) {
		if id := textID(t); t != "" && c.texts[id] == 0 {
			texts, ids = append(texts, t), append(ids, id)
		}
	}
	return c.keep(ctx, string(c.Model.Encoding), ids, func(i int) int { return c.Text(texts[i]) }, func(i, n int) { c.texts[ids[i]] = n })
}

// text returns the count of a prompt or of the tools, which it keeps in memory.
func (c *Counter) text(text string) int {
	if text == "" {
		return 0
	}
	id := textID(text)
	n, ok := c.texts[id]
	if !ok {
		n = c.Text(text)
		c.texts[id] = n
	}
	return n
}

func (c *Counter) beside() []string {
	if c.sent == nil {
		return nil
	}
	return c.sent.Beside
}

// toolText returns the text that is counted for tool definitions: their JSON.
func toolText(tools []record.Tool) string {
	if len(tools) == 0 {
		return ""
	}
	type definition struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Schema      json.RawMessage `json:"parameters,omitempty"`
	}
	list := make([]definition, len(tools))
	for i, t := range tools {
		list[i] = definition{t.Name, t.Description, t.Schema}
		if !json.Valid(t.Schema) {
			list[i].Schema = nil
		}
	}
	b, err := json.Marshal(list)
	if err != nil {
		return ""
	}
	return string(b)
}

// Sizes are the sizes of a draft's parts, in tokens.
type Sizes struct {
	System, Prompt, Tools, Summary, Messages, Overhead int
}

// Total returns their sum.
func (s Sizes) Total() int {
	return s.System + s.Prompt + s.Tools + s.Summary + s.Messages + s.Overhead
}

// Sizes returns the sizes of a draft after Fill. A message without a count is counted now, and its count is not kept in the cache.
func (c *Counter) Sizes(d *chatctx.Draft) Sizes {
	s := Sizes{Overhead: PerConversation, Tools: c.text(toolText(d.Tools)), Messages: c.messages(d)}
	for _, t := range c.beside() {
		s.Tools += c.text(t)
	}
	if d.System != "" {
		s.System = PerMessage + c.text(d.System)
	}
	if d.Prompt != "" {
		s.Prompt = PerMessage + c.text(d.Prompt)
	}
	if d.Summary != nil {
		s.Summary = c.Of(d, d.Summary)
	}
	return s
}

func (c *Counter) messages(d *chatctx.Draft) int {
	n := 0
	for _, m := range d.Messages {
		n += c.Of(d, m)
	}
	return n
}

// Of returns a message's count, 0 if it is not sent. A message without a count is counted now.
func (c *Counter) Of(d *chatctx.Draft, m *chatctx.DraftMessage) int {
	if unsent(m) {
		return 0
	}
	if m.Tokens == 0 {
		m.Tokens = c.Message(m.Message, d.Artifact)
	}
	return m.Tokens
}
