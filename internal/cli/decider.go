package cli

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/term"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/gate"
	"github.com/chatctx/chatctx/internal/grant"
)

// prove asks for the passphrase of the store's gate, once, so that what this command does may decide about agents' calls. It asks at a terminal alone. Whoever
// says nothing only looks.
func (r *run) prove(st *chatctx.Store) error {
	g, err := base.ReadGate(r.ctx, base.Of(st))
	if err != nil || g.Since == 0 || g.LevelOf() != record.LevelOwn || !r.con.asks() {
		return err
	}
	agent := gate.Above(os.Getenv)
	switch {
	case g.Phrase == nil:
		r.note("the gate has no passphrase yet, so no agent's call can be decided: chatctx gate passphrase sets it")
		return nil
	case agent != "":
		r.note("%s started this, so no agent's call can be decided here: use a terminal of your own", agent)
		return nil
	}
	for range 3 {
		phrase, err := r.secret("passphrase of the gate (Enter: only look): ")
		if err != nil || len(phrase) == 0 {
			return err
		}
		ctx, err := grant.Prove(r.ctx, base.Of(st), phrase)
		if clear(phrase); err == nil {
			r.ctx = ctx
			return nil
		}
		fmt.Fprintln(r.con.err, "chatctx:", err)
	}
	return fmt.Errorf("%w: three passphrases were wrong", base.ErrDecider)
}

// secret asks at the terminal for a line that is not shown.
func (r *run) secret(prompt string) ([]byte, error) {
	f, is := r.con.stdin().(*os.File)
	if !is {
		return nil, r.wantsTerminal("a passphrase is typed at a terminal", "no pipe, no argument and no variable has it")
	}
	fd := int(f.Fd())
	shown, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	fmt.Fprint(r.con.err, prompt)
	defer fmt.Fprintln(r.con.err)
	type line struct {
		text []byte
		err  error
	}
	typed := make(chan line, 1)
	go func() { // which a read that never ends keeps until the program does
		text, err := term.ReadPassword(fd)
		typed <- line{text, err}
	}()
	select {
	case l := <-typed:
		return l.text, l.err
	case <-r.ctx.Done():
		_ = term.Restore(fd, shown)
		return nil, r.ctx.Err()
	}
}

func doGatePassphrase(r *run, _ *struct{}) error {
	if agent := gate.Above(os.Getenv); !r.con.asks() || agent != "" {
		return r.wantsTerminal("a passphrase is typed at a terminal of your own", "no pipe, no argument and no variable has it, and no agent")
	}
	st, err := r.writer()
	if err != nil {
		return err
	}
	if g, err := base.ReadGate(r.ctx, base.Of(st)); err != nil {
		return err
	} else if g.Phrase != nil {
		if err := r.prove(st); err != nil {
			return err
		}
	}
	if err := r.choosePhrase(st); err != nil {
		return err
	}
	return r.emit(struct{}{}, func() { r.printf("calls review, ui and chat ask for it when they begin\n") })
}

// choosePhrase asks twice for a passphrase and gives it to the store's gate.
func (r *run) choosePhrase(st *chatctx.Store) error {
	phrase, err := r.secret("new passphrase: ")
	if err != nil {
		return err
	}
	defer clear(phrase)
	again, err := r.secret("once more: ")
	if err != nil {
		return err
	}
	defer clear(again)
	if !bytes.Equal(phrase, again) {
		return usagef("the two are not the same")
	}
	return grant.SetPhrase(r.ctx, base.Of(st), phrase)
}
