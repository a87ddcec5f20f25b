package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/internal/input"
	"github.com/chatctx/chatctx/internal/settings"
)

// piped is standard input beside a command that has its text as an argument or in a flag. A shell's loop and bash -s read it too, so it is left alone unless the setting input.piped
// says otherwise, and a line tells that it was.
type piped struct {
	f     *os.File
	early bool   // it had bytes as the command began
	text  string // the argument, or the value of a flag, that the command took instead; "" if it took none
}

// besideCommand returns standard input, nil if nobody offers it or if the command line asks for it with -.
func besideCommand(con *console, p *parsed) *piped {
	f, ok := con.stdin().(*os.File)
	asked := slices.Contains(p.args, "-") || slices.ContainsFunc(p.own, func(flag string) bool { return strings.HasSuffix(flag, "=-") })
	if !ok || f == nil || asked || !input.Offered(f) {
		return nil
	}
	return &piped{f: f, early: input.Pending(f)}
}

// beside returns the text of an argument with what standard input adds to it: nothing, unless input.piped is append.
func (r *run) beside(text string, in rawFlag) (string, error) {
	if text == "" || !slices.Contains(r.line.args, text) && r.line.flagSaying(text) < 0 {
		return text, nil
	}
	return r.withPiped(text, in)
}

// withPiped is beside for a text that stands in no argument.
func (r *run) withPiped(text string, in rawFlag) (string, error) {
	if r.piped == nil {
		return text, nil
	}
	if r.inputPiped() != "append" {
		r.piped.text = text
		return text, nil
	}
	more, err := r.readPiped(in)
	if err != nil || more == "" {
		return text, err
	}
	return text + "\n\n" + more, nil
}

// flagSaying returns the place among the command's own flags of one with this value, -1 for none.
func (p *parsed) flagSaying(text string) int {
	return slices.IndexFunc(p.own, func(flag string) bool {
		_, value, has := strings.Cut(flag, "=")
		return has && value == text
	})
}

// readPiped reads standard input to its end. After a second without data it says what it waits for.
func (r *run) readPiped(in rawFlag) (string, error) {
	f := r.piped.f
	r.piped = nil
	silent := time.AfterFunc(time.Second, func() { // beside the command: it touches nothing of its
		if !r.json() {
			fmt.Fprintln(r.con.err, "waiting for the end of standard input, which input.piped=append adds to the text")
		}
	})
	defer silent.Stop()
	b, err := readLimited(heard{input.New(r.ctx, f), silent}, maxText)
	if err != nil {
		return "", fmt.Errorf("standard input: %w", err)
	}
	if in.Raw {
		return string(b), nil
	}
	return withoutLineEnd(string(b)), nil
}

// heard is a reader that starts a timer again with each piece.
type heard struct {
	from  io.Reader
	timer *time.Timer
}

func (h heard) Read(p []byte) (int, error) {
	n, err := h.from.Read(p)
	if n > 0 && h.timer.Stop() { // once it has spoken, it is silent
		h.timer.Reset(time.Second)
	}
	return n, err
}

// inputPiped returns the setting input.piped in force where the command works, or that of the environment where there is no conversation yet.
func (r *run) inputPiped() string {
	a := r.apart()
	defer a.close()
	var have map[string]json.RawMessage
	if c, err := a.conversation(); err == nil {
		have, _ = c.Effective(r.ctx, r.branchName())
	} else if a.st != nil {
		have, _ = a.st.Settings(r.ctx)
	}
	var mode string
	if json.Unmarshal(settings.WithEnv(have, os.Getenv)["input.piped"], &mode) != nil {
		return "note"
	}
	return mode
}

// sayKept says at the end of a command that standard input was not read, if there is something in it.
func (r *run) sayKept(err error) {
	if r.piped == nil || r.piped.text == "" || errors.Is(err, errBroken) || !r.piped.early && !input.Pending(r.piped.f) || r.inputPiped() == "ignore" {
		return
	}
	line, does := *r.line, "give - as the text to read it"
	line.args = slices.Clone(line.args)
	if _, joins := r.in.(interface{ none() bool }); joins {
		does, line.args = "add - to send it", append(line.args, "-")
	} else if i := slices.Index(line.args, r.piped.text); i >= 0 {
		line.args[i] = "-"
	} else if i := line.flagSaying(r.piped.text); i >= 0 {
		name, _, _ := strings.Cut(line.own[i], "=")
		line.own = slices.Clone(line.own)
		line.own[i] = name + "=-"
	}
	text := "standard input was not read; " + does
	if typed := r.again(line.typed("")); len(typed) <= 200 {
		text += ": " + typed
	}
	r.warn(text)
}
