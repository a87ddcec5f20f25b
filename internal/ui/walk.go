package ui

import (
	"slices"

	"github.com/chatctx/chatctx/internal/screen"
)

// lay makes the rows again and keeps the cursor's line.
func (v *conversation) lay() {
	v.rows = v.tree.Rows(v.glyphs, v.folds)
	v.resize(len(v.rows), v.height)
}

// here returns the row at the cursor, nil if there is none.
func (v *conversation) here() *screen.Row {
	if v.cursor >= len(v.rows) {
		return nil
	}
	return &v.rows[v.cursor]
}

// covers reports whether a row draws a message, or stands for it.
func (v *conversation) covers(r *screen.Row, owner screen.Place) bool {
	if r.Kind == screen.BeginRow {
		return false
	}
	own := v.tree.Owner(r.Place)
	switch r.Kind {
	case screen.MessageRow:
		return own == owner
	case screen.FoldedRow: // it stands for branches too, and opening it shows them
		return own.Branch == owner.Branch && owner.Position >= own.Position
	}
	return own.Branch == owner.Branch && owner.Position >= own.Position && owner.Position < own.Position+r.Count
}

// find puts the cursor on a message, and opens the folds around it.
func (v *conversation) find(p screen.Place) { v.stand(p, screen.MessageRow) }

// stand puts the cursor on a message, or, for GapRow, on the gap that begins with it if that is closed, and opens the folds around it.
func (v *conversation) stand(p screen.Place, kind int) {
	owner := v.tree.Owner(p)
	for range len(v.tree.Branches) + 2 { // each round opens something, or is the last
		i := slices.IndexFunc(v.rows, func(r screen.Row) bool { return v.covers(&r, owner) })
		switch {
		case i < 0 && !v.openAround(owner):
			return
		case i < 0:
		case v.tree.Owner(v.rows[i].Place) == owner && (v.rows[i].Kind != screen.GapRow || kind == screen.GapRow), !v.open(&v.rows[i]):
			v.center(i)
			return
		}
		v.lay()
	}
}

// openAround opens the folded sides around a message, and reports whether there was one.
func (v *conversation) openAround(owner screen.Place) bool {
	for i := range v.rows {
		r := &v.rows[i]
		if r.Kind == screen.FoldedRow && v.under(owner, v.tree.Owner(r.Place)) {
			return v.open(r)
		}
	}
	return false
}

// under reports whether message p comes after message of on the path from the beginning, or is it.
func (v *conversation) under(p, of screen.Place) bool {
	last := screen.Place{Branch: p.Branch, Position: v.tree.Branches[p.Branch].Messages}
	if p.Position > last.Position || of.Position > p.Position {
		return false
	}
	return v.tree.Owner(screen.Place{Branch: p.Branch, Position: of.Position}) == of
}

// open unfolds a row and reports whether there was anything to unfold.
func (v *conversation) open(r *screen.Row) bool {
	switch {
	case r.Kind == screen.GapRow, r.Kind == screen.LeafRow && r.Count > 1:
		v.setFold(&v.folds.Open, r.Place, true)
	case r.Kind == screen.FoldedRow:
		v.setFold(&v.folds.Folded, r.Place, false)
	default:
		return false
	}
	return true
}

func (v *conversation) setFold(m *map[screen.Place]bool, p screen.Place, on bool) {
	if *m == nil {
		*m = map[screen.Place]bool{}
	}
	if on {
		(*m)[p] = true
	} else {
		delete(*m, p)
	}
}

// unfold opens the row at the cursor, or goes down if there is nothing to open.
func (v *conversation) unfold() {
	if r := v.here(); r == nil || !v.open(r) {
		v.by(1)
		return
	}
	v.lay()
}

// fold closes the innermost open part around the row at the cursor: an open gap, an open leaf, or the side. If there is none, it goes to the fork above.
func (v *conversation) fold() {
	r := v.here()
	if r == nil || r.Kind == screen.BeginRow {
		return
	}
	if at, ok := v.innermost(r); ok {
		delete(v.folds.Open, at)
		v.lay()
		v.stand(at, screen.GapRow)
		return
	}
	if r.Depth > 0 && r.Kind != screen.LeafRow && r.Kind != screen.FoldedRow {
		v.setFold(&v.folds.Folded, r.Side, true)
		side := r.Side
		v.lay()
		v.to(slices.IndexFunc(v.rows, func(r screen.Row) bool { return r.Kind == screen.FoldedRow && r.Place == side }))
		return
	}
	v.toFork(-1)
}

// innermost returns the open gap or leaf around a row.
func (v *conversation) innermost(r *screen.Row) (at screen.Place, ok bool) {
	for p := range v.folds.Open {
		if p.Branch == r.Branch && p.Position <= r.Position && p.Position > at.Position && v.endOf(p) >= r.Position {
			at, ok = p, true
		}
	}
	return at, ok
}

// endOf returns the last position of an open gap or leaf: the next fork or the end of the branch.
func (v *conversation) endOf(p screen.Place) int {
	end := v.tree.Branches[p.Branch].Messages
	for _, r := range v.rows {
		if r.Branch == p.Branch && r.Fork && r.Position >= p.Position && r.Kind != screen.BeginRow {
			end = min(end, r.Position)
		}
	}
	return end
}

// toFork goes to the next fork in a direction.
func (v *conversation) toFork(step int) {
	for i := v.cursor + step; i >= 0 && i < len(v.rows); i += step {
		if v.rows[i].Fork {
			v.to(i)
			return
		}
	}
}

// toHead puts the cursor on the head of a branch.
func (v *conversation) toHead(branch int) {
	if b := v.tree.Branches[branch]; b.Messages > 0 {
		v.find(screen.Place{Branch: branch, Position: b.Messages})
	}
}

// branchHere returns the branch for a command at the cursor: the active one if it has the message, else one whose head it is, else the one that is drawn.
func (v *conversation) branchHere() int {
	r := v.here()
	switch {
	case r == nil || r.Kind == screen.BeginRow && len(r.Heads) == 0 || r.Kind != screen.BeginRow && v.tree.Holds(v.active(), r.Place):
		return v.active()
	case len(r.Heads) > 0:
		return r.Heads[0]
	}
	return r.Branch
}

// headHere returns the branch at the cursor for commands about a whole branch: one whose head the row is, else the one that is drawn.
func (v *conversation) headHere() int {
	r := v.here()
	switch {
	case r == nil:
		return v.active()
	case len(r.Heads) > 0:
		return r.Heads[0]
	case r.Kind == screen.BeginRow:
		return v.active()
	}
	return r.Branch
}
