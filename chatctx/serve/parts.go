package serve

import (
	"encoding/json"
	"fmt"
)

// partMethod is the notification with a part of a message that is too long for a line, in either direction.
const partMethod = "$/part"

// partParams are one part: the bytes of all parts of a message, in order, are its line.
type partParams struct {
	Of   json.RawMessage `json:"of"` // the same for all parts of a message
	Data []byte          `json:"data"`
	Last bool            `json:"last,omitempty"`
}

// parts has the messages of which some parts have arrived.
type parts struct {
	all  map[string][]byte
	size int
}

// mostParts is the largest number of such messages.
const mostParts = 100

// add appends a part to the earlier ones, and returns the message with the last one. If the message is too large, all its parts are dropped.
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

// part reads a part of a message from the other side, and the whole message with the last part.
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
		c.line(line, nil)
	}
}
