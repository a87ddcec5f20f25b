package ui

// roll is a list of which a part is on the screen: the number of lines, the cursor, the first line shown, and the height.
type roll struct {
	n, cursor, top, height int
	reads                  bool // it is for reading: the cursor is the first line, and moving scrolls
}

// resize sets the number of lines and the height of the screen.
func (r *roll) resize(n, height int) {
	r.n, r.height = n, max(height, 1)
	r.to(r.cursor)
}

// to puts the cursor on a line, and scrolls to it.
func (r *roll) to(line int) {
	if r.reads {
		r.top = max(min(line, r.n-r.height), 0)
		r.cursor = r.top
		return
	}
	r.cursor = max(min(line, r.n-1), 0)
	r.top = max(min(r.top, r.cursor), r.cursor-r.height+1, 0)
	r.top = min(r.top, max(r.n-r.height, 0))
}

func (r *roll) by(lines int) { r.to(r.cursor + lines) }

// center puts the cursor on a line in the middle of the screen.
func (r *roll) center(line int) {
	r.top = max(line-r.height/2, 0)
	r.to(line)
}

// shown returns the part that is on the screen.
func (r *roll) shown() (from, to int) { return r.top, min(r.top+r.height, r.n) }

// moved handles the keys that move in any list, and reports whether it was one.
func (r *roll) moved(key string) bool {
	switch key {
	case "up", "k", "ctrl+p":
		r.by(-1)
	case "down", "j", "ctrl+n":
		r.by(1)
	case "pgup", "ctrl+b":
		r.by(-r.height)
	case "pgdown", "ctrl+f":
		r.by(r.height)
	case "ctrl+u":
		r.by(-r.height / 2)
	case "ctrl+d":
		r.by(r.height / 2)
	case "home", "g":
		r.to(0)
	case "end", "G":
		r.to(r.n - 1)
	default:
		return false
	}
	return true
}
