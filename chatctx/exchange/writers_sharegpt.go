package exchange

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// writeShareGPT writes a branch as a list of one conversation.
func writeShareGPT(ctx context.Context, x *Writing) error {
	snap, err := x.Context.Snapshot(ctx, x.Options.Branch)
	if err != nil {
		return err
	}
	end := "}]"
	if snap.Info.System != "" {
		end = `,"system":` + string(jsonText(snap.Info.System)) + end
	}
	return x.listed(`[{"conversations":`, func(add func(json.RawMessage)) error {
		w := shareGPTWriter{x: x, add: add}
		for e, err := range x.sent(ctx, snap) {
			if err != nil {
				return err
			}
			w.message(e)
		}
		w.end()
		return nil
	}, end)
}

// shareGPTWriter writes turns that alternate, as the programs demand that train on such files: LLaMA-Factory skips a row in which one of human and observation is not
// followed by one of gpt and function_call. What stands on one side in a row becomes one turn.
type shareGPTWriter struct {
	x      *Writing
	add    func(json.RawMessage)
	from   string   // of the turn that is open, "" for none
	values []string // of the turn that is open
	broken bool     // turns do not alternate
	asked  bool     // the turn before the open one is the person's or a tool's
}

func (w *shareGPTWriter) message(e *chatctx.Entry) {
	for _, p := range e.Content {
		if p.Type == pool.ImagePart || p.Type == pool.DocumentPart {
			w.x.leaveOut("images and files: sharegpt holds texts")
		}
	}
	switch {
	case e.Result != nil:
		w.turn("observation", resultText(e.Result))
	case e.Role == pool.Assistant && len(e.Calls) > 0:
		if e.Text() != "" {
			w.x.leaveOut("texts of answers that have calls too: in sharegpt a turn is one or the other")
		}
		for i := range e.Calls {
			w.turn("function_call", string(jsonObject(field{"name", e.Calls[i].Tool}, field{"arguments", argumentsOf(&e.Calls[i])})))
		}
	case e.Role == pool.Assistant:
		w.turn("gpt", e.Text())
	case e.Role == pool.System:
		w.end()
		w.add(jsonObject(field{"from", "system"}, field{"value", e.Text()}))
	default:
		w.turn("human", e.Text())
	}
}

// turn adds a value to the open turn, or begins another one.
func (w *shareGPTWriter) turn(from, value string) {
	if from != w.from {
		w.end()
		w.from = from
	}
	w.values = append(w.values, value)
}

// end writes the open turn.
func (w *shareGPTWriter) end() {
	if w.from == "" {
		return
	}
	asks := w.from == "human" || w.from == "observation"
	if asks == w.asked && !w.broken {
		w.broken = true
		w.x.leaveOut("the order that trainers ask for: turns do not alternate between what is asked and what is answered, so they skip the conversation")
	}
	w.asked = asks
	value := strings.Join(w.values, "\n\n")
	if len(w.values) > 1 && (w.from == "function_call" || w.from == "observation") {
		value = listOfValues(w.values)
	}
	w.add(jsonObject(field{"from", w.from}, field{"value", value}))
	w.from, w.values = "", nil
}

// listOfValues returns values as a JSON list: those that are JSON as they are, others as texts.
func listOfValues(values []string) string {
	list := make([]json.RawMessage, len(values))
	for i, v := range values {
		if list[i] = json.RawMessage(v); !json.Valid(list[i]) {
			list[i] = jsonText(v)
		}
	}
	raw, _ := json.Marshal(list)
	return string(raw)
}
