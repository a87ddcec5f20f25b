package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/leftover"
)

// editedText opens the message that ref names in the person's editor and returns the new text. An unchanged text is an error, since there is
// nothing to do then.
func (r *run) editedText(ref record.Ref) (string, error) {
	editor, err := chosenEditor()
	if err != nil {
		return "", err
	}
	_, snap, err := r.snapshotToChange()
	if err != nil {
		return "", err
	}
	e, err := snap.Find(r.ctx, ref)
	if err != nil {
		return "", err
	}
	if editor == nil && !r.con.asks() {
		return "", &usageError{"edit needs the new text, there is no terminal for an editor", "usage: chatctx edit REF TEXT, or - for standard input"}
	}
	if editor == nil {
		editor = []string{defaultEditor}
	}
	r.close() // the editor may stay open for hours
	before := e.Text()
	text, err := r.runEditor(editor, before)
	if err != nil {
		return "", err
	}
	if text == before {
		return "", errors.New("the text was not changed, so nothing was done")
	}
	return text, validText(text)
}

// chosenEditor returns the command in VISUAL, else in EDITOR, nil if neither is set.
func chosenEditor() ([]string, error) {
	for _, variable := range []string{"VISUAL", "EDITOR"} {
		if line := strings.TrimSpace(os.Getenv(variable)); line != "" {
			return commandOf(variable, line)
		}
	}
	return nil, nil
}

// runEditor lets an editor change text, in a file that only this person can read. Editors end a file with a line end: one that the text did not have is
// removed.
func (r *run) runEditor(editor []string, text string) (string, error) {
	f, err := os.CreateTemp("", leftover.Name("edit-*.md"))
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(r.ctx, editor[0], append(editor[1:len(editor):len(editor)], f.Name())...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r.con.stdin(), os.Stderr, os.Stderr
	if r.con.tty {
		cmd.Stdout = os.Stdout
	}
	if err := cmd.Run(); errors.Is(err, exec.ErrNotFound) {
		return "", &hinted{fmt.Errorf("there is no editor %q; nothing was done", editor[0]), "name yours: export EDITOR=…, or say the text: chatctx edit REF TEXT"}
	} else if err != nil {
		return "", fmt.Errorf("the editor %q: %w; nothing was done", strings.Join(editor, " "), err)
	}
	b, err := os.ReadFile(f.Name())
	if err != nil {
		return "", err
	}
	if int64(len(b)) > maxText {
		return "", usagef("the text is longer than %s", size(maxText))
	}
	if !strings.HasSuffix(text, "\n") {
		return withoutLineEnd(string(b)), nil
	}
	return string(b), nil
}
