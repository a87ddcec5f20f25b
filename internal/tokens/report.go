package tokens

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// These words say how exact counts are.
const (
	Exact       = "exact"       // by the model's own encoding, or by the provider's own counter
	Calibrated  = "calibrated"  // by another encoding, corrected by what the provider reported for earlier requests
	Approximate = "approximate" // by another encoding, which may be 20 to 30 % off
)

// same reports whether the message is from a model that counts like this one.
func (c *Counter) same(m *pool.Message) bool {
	return m.Meta.Model != "" && (c.Model.Base == "" || family(baseName(m.Meta.Model)) == c.Model.Family)
}

// Ratio returns the ratio of the provider's figures to our counts. It compares the growth of the input from reply to reply, so that messages that an earlier
// request left out do not matter; with a single reply, it compares the whole input. ok is false if nothing was reported or the figures do not fit a request
// like this one.
func (c *Counter) Ratio(d *chatctx.Draft) (ratio float64, ok bool) {
	var grown, counted, last, since, whole, first int
	sizes := c.Sizes(d)
	before := sizes.Total() - sizes.Messages
	for _, m := range d.Messages {
		if in := m.Meta.InputTokens; m.Role == pool.Assistant && in != nil && *in > 0 && c.same(m.Message) {
			if delta := int(*in) - last; last > 0 && plausible(delta, since) {
				grown, counted = grown+delta, counted+since
			}
			if first == 0 {
				first, whole = int(*in), before
			}
			last, since = int(*in), 0
		}
		before += m.Tokens
		since += m.Tokens
	}
	if counted < 50 {
		grown, counted = first, whole
	}
	if counted == 0 || !plausible(grown, counted) {
		return 1, false
	}
	return float64(grown) / float64(counted), true
}

func plausible(reported, counted int) bool { return reported*2 >= counted && reported <= counted*2 }

// Preview returns the beginning of a message on one line, at most width characters: its text, else its calls or its result.
func Preview(m *pool.Message, width int) string {
	text := m.Text()
	if text == "" && len(m.Calls) > 0 {
		names := make([]string, len(m.Calls))
		for i := range m.Calls {
			names[i] = m.Calls[i].Tool + "(" + cut(string(m.Calls[i].Arguments), width) + ")"
		}
		text = strings.Join(names, " ")
	}
	if r := m.Result; text == "" && r != nil {
		switch {
		case len(r.Parts) > 0:
			text = (&pool.Message{Content: r.Parts}).Text()
		case r.JSON != nil:
			text = string(r.JSON)
		default:
			text = r.Text
		}
	}
	for i := 0; text == "" && i < len(m.Content); i++ {
		text = strings.TrimSpace("[" + m.Content[i].Type + " " + m.Content[i].Name + "]")
	}
	return oneLine(text, width)
}

// cut returns a text without what is certainly not shown, so that a large one is not walked.
func cut(text string, width int) string { return text[:min(len(text), 4*width)] }

// oneLine returns the beginning of a text, at most width characters, with each run of white space as one blank.
func oneLine(text string, width int) string {
	text = cut(text, width)
	b := make([]byte, 0, min(len(text), width)+8)
	n, blank := 0, false
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		i += size
		if r <= ' ' || r >= 0x7f && (unicode.IsSpace(r) || unicode.IsControl(r)) {
			blank = n > 0
			continue
		}
		if blank {
			b, n, blank = append(b, ' '), n+1, false
		}
		if n >= width-1 {
			return string(append(b, "…"...))
		}
		b, n = utf8.AppendRune(b, r), n+1
	}
	return string(b)
}
