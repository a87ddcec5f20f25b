package adapter

import "github.com/chatctx/chatctx/chatctx"

// Provider is an Adapter made of what differs between providers: all three fields are needed. R is a request in the making.
type Provider[R, Body any] struct {
	Rules *Rules // with these the settings are read
	// Open begins a request with its settings, and returns the rules that hold for them.
	Open func(*Settings) (R, *Rules, error)
	// Render makes the body of a request from the conversation in normal form.
	Render func(R, *Conversation) Body
}

// Adapt implements Adapter.
func (p Provider[R, Body]) Adapt(d *chatctx.Draft) (Body, error) {
	var none Body
	r, own, _, err := p.open(d)
	if err != nil {
		return none, err
	}
	c, err := normalise(d, own)
	if err != nil {
		return none, err
	}
	return p.Render(r, c), nil
}

// Reader implements Adapter.
func (p Provider[R, Body]) Reader(d *chatctx.Draft) (*Reader, error) {
	_, own, s, err := p.open(d)
	if err != nil {
		return nil, err
	}
	return &Reader{own, s, d.Settings}, nil
}

func (p Provider[R, Body]) open(d *chatctx.Draft) (r R, own *Rules, s *Settings, err error) {
	if s, err = readSettings(d.Settings, p.Rules); err != nil {
		return r, nil, nil, err
	}
	r, own, err = p.Open(s)
	return r, own, s, err
}
