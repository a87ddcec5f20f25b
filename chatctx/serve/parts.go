package serve

import (
	"encoding/json"
	"fmt"
)

// partMethod is the notification that brings a part of a message that is longer than a line may be, in either direction.
const partMethod = "$/part"

// partParams are a part: the bytes of all parts of one message, in their order, are its line.
type partParams struct {
	Of   json.RawMessage `json:"of"` // the same for all parts of a message
	Data []byte          `json:"data"`
	Last bool            `json:"last,omitempty"`
}

// parts are messages of which some parts came.
type parts struct {
	all  map[string][]byte
	size int
}

// mostParts bounds the messages that are begun at a time.
const mostParts = 100

// add puts a part to those before it, and gives the message with the last one. Where it is too much, what came of the message is forgotten.
func (p *parts) add(in *partParams) (line []byte, err error) {
	of := string(in.Of)
	got, known := p.all[of]
	switch {
	case of == "" || of == "null" || of[0] == '{' || of[0] == '[':
		return nil, fmt.Errorf("%s needs of, a number or a text that is the same for all parts of a message", partMethod)
	case p.size+len(in.Data) > mostMessage, !known && len(p.all) >= mostParts:
		p.forget(of)
		return nil, fmt.Errorf("messages in parts have at most %d MB together, and are at most %d", mostMessage>>20, mostParts)
	}
	if p.all == nil {
		p.all = map[string][]byte{}
	}
	p.all[of] = append(got, in.Data...)
	p.size += len(in.Data)
	if !in.Last {
		return nil, nil
	}
	line = p.all[of]
	p.forget(of)
	return line, nil
}

func (p *parts) forget(of string) {
	p.size -= len(p.all[of])
	delete(p.all, of)
}

// part takes a part of a message from the other side, and the message with its last one.
func (c *rpc) part(params json.RawMessage) {
	var in partParams
	err := json.Unmarshal(params, &in)
	if err != nil {
		err = fmt.Errorf("%s has of, data in base64, and last with the last one", partMethod)
	}
	var line []byte
	if err == nil {
		line, err = c.parts.add(&in)
	}
	switch m, _, _ := parseRequest(line); {
	case err != nil:
		c.refuse(nil, codeInvalid, err.Error())
	case !in.Last:
	case len(line) == 0 || m.Method == partMethod:
		c.refuse(nil, codeInvalid, "the parts are no message")
	default:
		c.line(line)
	}
}
