package cli

import (
	"errors"
	"github.com/chatctx/chatctx/chatctx/record"
	"maps"
	"slices"
	"strings"
)

// explained adds to an error about a reference what to type instead.
func (r *run) explained(err error) error {
	var ref *record.RefError
	if !errors.As(err, &ref) || len(ref.Candidates) > 0 || r.st == nil {
		return err
	}
	if ref.On != "" {
		return &hinted{err, "on that branch: " + r.again(r.line.typedOn(ref.On))}
	}
	if near := suggest(ref.Ref, r.known(ref.Kind), "", ""); near != "" {
		return &hinted{err, near}
	}
	return err
}

// mostKnown bounds how many names are searched for one like the typed one.
const mostKnown = 10000

// known returns the names that a reference of a kind can have, and the words of titles.
func (r *run) known(kind string) []string {
	var names []string
	if kind == "conversation" {
		for info, err := range r.st.Contexts(r.ctx, record.ListOptions{}) {
			if err != nil || len(names) > mostKnown {
				return nil
			}
			names = append(names, append(strings.Fields(info.Title), info.Title)...)
		}
		return names
	}
	if kind != "branch" && kind != "message" && kind != "tag" {
		return nil
	}
	c, err := r.st.Context(r.ctx, r.contextRef())
	if err != nil {
		return nil
	}
	if kind != "tag" {
		branches, err := c.Branches(r.ctx)
		if err != nil {
			return nil
		}
		for _, b := range branches {
			names = append(names, b.Name)
		}
	}
	if kind != "branch" {
		tags, err := c.Tags(r.ctx)
		if err != nil {
			return nil
		}
		names = append(names, slices.Sorted(maps.Keys(tags))...)
	}
	return names
}
