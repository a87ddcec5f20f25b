package cli

import (
	"encoding/base64"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/charset"
	_ "github.com/chatctx/chatctx/internal/charset/eastasian" // artifacts may be texts in these
	"github.com/chatctx/chatctx/internal/window"
)

// artifactJSON is an output or an attachment.
type artifactJSON struct {
	Key       string     `json:"key"`
	Message   chatctx.ID `json:"message"`
	Kind      string     `json:"kind"`
	Tool      string     `json:"tool,omitempty"`
	MediaType string     `json:"media_type,omitempty"`
	Name      string     `json:"name,omitempty"`
	Size      int        `json:"size"`
	Text      *string    `json:"text,omitempty"`
	Data      string     `json:"data,omitempty"`
}

func artifactOf(a *enhancer.Artifact) artifactJSON {
	return artifactJSON{Key: a.Key, Message: a.Message, Kind: string(a.Kind), Tool: a.Tool, MediaType: a.MediaType, Name: a.Name, Size: a.Size}
}

func doArtifacts(r *run) error {
	c, snap, err := r.snapshot()
	if err != nil {
		return err
	}
	list, err := window.BranchArtifacts(c, snap.Info.Name).List(r.ctx)
	if err != nil {
		return err
	}
	for i := range list {
		a := &list[i]
		if err := r.emit(artifactOf(a), func() {
			from := strings.TrimSpace(a.Tool + " " + a.MediaType + " " + a.Name)
			r.printf("%s  %-6s %9s  %s  %s\n", a.Key[:16], a.Kind, size(int64(a.Size)), r.paint(yellow, short(a.Message)), cut(oneLine(from), max(r.con.width-48, 10)))
		}); err != nil {
			return err
		}
	}
	if len(list) == 0 {
		r.note("%s has no large outputs and no attachments", clean(snap.Info.Name))
	}
	return nil
}

type artifactIn struct {
	Key string `arg:"KEY"`
}

func doArtifact(r *run, in *artifactIn) error {
	key := in.Key
	if len(strings.TrimSpace(key)) < 4 {
		return usagef("the key %q is too short: give at least 4 digits", key)
	}
	c, snap, err := r.snapshot()
	if err != nil {
		return err
	}
	found, err := window.BranchArtifacts(c, snap.Info.Name).Find(r.ctx, key)
	if err != nil {
		return err
	}
	switch len(found) {
	case 0:
		return base.NotFound("artifact", key)
	case 1:
	default:
		keys := make([]string, len(found))
		for i := range found {
			keys[i] = found[i].Key
		}
		return base.Ambiguous("artifact", key, keys, 0)
	}
	a := &found[0]
	v := artifactOf(a)
	decoded, isText := charset.Decode(a.Data, a.MediaType)
	if isText && (a.MediaType == "" || strings.HasPrefix(a.MediaType, "text/")) {
		v.Text = &decoded.Text
	} else {
		v.Data = base64.StdEncoding.EncodeToString(a.Data)
	}
	if v.Text == nil && r.con.tty && !r.json() {
		return &hinted{usagef("the artifact is binary (%s) and would garble the terminal", size(int64(a.Size))), "send it to a file: " + r.again("artifact show "+a.Key[:16]) + " > FILE"}
	}
	return r.emit(v, func() {
		switch {
		case v.Text == nil, !r.con.tty:
			r.con.out.Write(a.Data)
		default:
			r.printf("%s\n", clean(strings.TrimSuffix(*v.Text, "\n")))
		}
	})
}
