package operation

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
)

func init() { Register(Group{Heading: "Messages", Of: shortenOperations}) }

func shortenOperations() []*Operation {
	const at = "/contexts/{context}/branches/{branch}"
	return []*Operation{
		Define("messages.shorten", "POST "+at+"/messages/{message}/shorten", Run, "set the short form of a tool result", shortenMessage).
			As("shorten", "chatctx shorten @ \"3 of 240 tests fail, all in parser_test.go\"\nchatctx shorten @ --clear").
			With("The short form stands for the result where old results are shortened (chatctx prune) and in summaries made by rules. The result itself stays."),
	}
}

// ShortForm is a short form of a tool result.
type ShortForm struct {
	Change
	Message record.Ref `json:"message" arg:"REF" doc:"the message with the result"`
	Text    string     `json:"text,omitempty" arg:"[TEXT|-]" doc:"the short form; without one it is removed"`
	Clear   bool       `json:"-" flag:"clear" doc:"remove it"`
	RawInput
}

// Shorter is a tool result with its new short form.
type Shorter struct {
	contract.Where
	Message chatctx.ID `json:"message"`
	Summary *string    `json:"compact_summary"`
}

func shortenMessage(r *Request, in *ShortForm) (v Shorter, err error) {
	_, snap, err := r.snapshot(in.Target)
	if err != nil {
		return v, err
	}
	if v.Message, _, _, err = snap.Locate(r.Ctx, in.Message); err != nil {
		return v, err
	}
	v.Where, err = where(r.commit(in.Change, func(b *chatctx.Batch) { b.SetCompactSummary(record.RefTo(v.Message), in.Text) }))
	v.Summary = contract.String(in.Text)
	return v, err
}
