package cost

import (
	"encoding/json"
	"time"

	"github.com/chatctx/chatctx/pool"
)

// Usage is the number of tokens that a reply took. Each token counts in one place: tokens that were read from the cache or written to it are not in Input.
// Reasoning is a part of Output.
type Usage struct {
	Input          int64 `json:"-"`
	CacheRead      int64 `json:"cache_read_tokens"`
	CacheWrite     int64 `json:"cache_write_tokens"`
	CacheWriteHour int64 `json:"cache_write_1h_tokens"` // written to stay in the cache for an hour
	Output         int64 `json:"output_tokens"`
	Reasoning      int64 `json:"reasoning_tokens"`
}

// AllInput returns the whole input, cached or not.
func AllInput(u Usage) int64 { return u.Input + u.CacheRead + u.CacheWrite + u.CacheWriteHour }

func (u *Usage) add(more *Usage) {
	u.Input += more.Input
	u.CacheRead += more.CacheRead
	u.CacheWrite += more.CacheWrite
	u.CacheWriteHour += more.CacheWriteHour
	u.Output += more.Output
	u.Reasoning += more.Reasoning
}

// Origin says where the figures of a usage come from.
type Origin string

// The origins of figures.
const (
	Reported  Origin = "reported"  // from the provider
	Estimated Origin = "estimated" // from the program that wrote a file and that does not attribute them to a provider
	Missing   Origin = "missing"   // none, or not both input and output
)

// most is the largest count that is believed.
const most = 1 << 40

// usageOf returns the usage that a message states.
func usageOf(m *pool.Metadata, imported bool) (Usage, Origin) {
	count := func(n *int64) int64 {
		if n == nil {
			return 0
		}
		return believed(*n)
	}
	if m.InputTokens == nil || m.OutputTokens == nil {
		return Usage{}, Missing
	}
	u := Usage{CacheRead: count(m.CacheRead), CacheWrite: count(m.CacheWrite), Output: count(m.OutputTokens), Reasoning: count(m.ReasoningTokens)}
	u.Input = max(count(m.InputTokens)-u.CacheRead-u.CacheWrite, 0)
	u.Reasoning = min(u.Reasoning, u.Output)
	u.CacheWriteHour = min(hourOf(m.Usage), u.CacheWrite)
	u.CacheWrite -= u.CacheWriteHour
	u.compactions(m.Usage)
	if imported && len(m.Usage) == 0 {
		return u, Estimated
	}
	return u, Reported
}

// hourOf returns how many of the tokens written to the cache stay there for an hour, which Anthropic reports separately.
func hourOf(usage json.RawMessage) int64 {
	var u struct {
		Created struct {
			Hour int64 `json:"ephemeral_1h_input_tokens"`
		} `json:"cache_creation"`
	}
	if len(usage) == 0 || json.Unmarshal(usage, &u) != nil {
		return 0
	}
	return max(u.Created.Hour, 0)
}

// compactions adds what the provider took to compact the conversation before it answered. Anthropic reports that beside the answer's own figures.
func (u *Usage) compactions(usage json.RawMessage) {
	var v struct {
		Iterations []struct {
			Type       string `json:"type"`
			Input      int64  `json:"input_tokens"`
			CacheRead  int64  `json:"cache_read_input_tokens"`
			CacheWrite int64  `json:"cache_creation_input_tokens"`
			Output     int64  `json:"output_tokens"`
			Created    struct {
				Hour int64 `json:"ephemeral_1h_input_tokens"`
			} `json:"cache_creation"`
		} `json:"iterations"`
	}
	if len(usage) == 0 || json.Unmarshal(usage, &v) != nil {
		return
	}
	for _, i := range v.Iterations {
		if i.Type == "compaction" {
			hour := min(believed(i.Created.Hour), believed(i.CacheWrite))
			u.add(&Usage{Input: believed(i.Input), CacheRead: believed(i.CacheRead), CacheWrite: believed(i.CacheWrite) - hour,
				CacheWriteHour: hour, Output: believed(i.Output)})
		}
	}
}

// believed returns a count within what is believed.
func believed(n int64) int64 { return min(max(n, 0), most) }

// Reply is what a model's reply took and cost.
type Reply struct {
	Usage
	Origin          Origin
	Provider, Model string
	Kind            string    // reply; summary, digest or title for requests apart from the conversation
	At              time.Time // when it was complete; zero: unknown
	// Price is nil if the model's is unknown. Cost then is 0 and means nothing, as it does if Origin is Missing.
	Price *Price
	Cost  Money
}

// Known reports whether Cost is the cost of the reply.
func (r *Reply) Known() bool { return r.Price != nil && r.Origin != Missing }

// AnswerKind is the Kind of a reply in a conversation.
const AnswerKind = "reply"

// Reply returns what a message took and cost, or nil if it is not known to be a model's.
func (p *Prices) Reply(m *pool.Message) *Reply {
	return p.reply(&pool.Facts{Role: m.Role, Meta: m.Meta, Created: m.Created, Kind: m.Kind, Source: m.Source})
}

func (p *Prices) reply(m *pool.Facts) *Reply {
	if m.Meta.Model == "" || m.Role != pool.Assistant && m.Meta.OutputTokens == nil {
		return nil
	}
	r := &Reply{Provider: m.Meta.Provider, Model: m.Meta.Model, Kind: m.Kind, At: m.Meta.Completed.Time()}
	if r.Kind == "" || m.Role == pool.Assistant && r.Kind != "summary" && r.Kind != "digest" && r.Kind != "title" {
		r.Kind = AnswerKind
	}
	if r.At.IsZero() {
		r.At = m.Created.Time()
	}
	r.Usage, r.Origin = usageOf(&m.Meta, m.Source != nil)
	if r.Price = p.Of(r.Provider, r.Model, r.At); r.Price != nil && r.Origin != Missing {
		r.Cost = r.Price.Of(r.Usage)
	}
	return r
}
