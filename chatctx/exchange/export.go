package exchange

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
)

// ExportOptions say what to write.
type ExportOptions struct {
	Format  string // a name of ExportFormats; "": chatctx, the store's own
	Context string // a reference; "": the current one
	Branch  string // for formats that hold one branch; "": the active one
	All     bool   // every context that is not in the trash, instead of one: chatctx only
	Hidden  bool   // hidden messages too, where the format is for reading
}

// ExportFormat is a format that can be written.
type ExportFormat struct {
	Name      string
	Extension string // that files of it have, with the point
	What      string // what it holds, in a few words
	write     func(ctx context.Context, x *export) error
}

// ExportFormats are all that can be written. The first is the store's own, which loses nothing.
var ExportFormats = []ExportFormat{
	{nativeName, ".jsonl", "contexts with all branches, lossless, to import again", writeNative},
	{"markdown", ".md", "one branch, to read", writeMarkdown},
	{"html", ".html", "a context with all branches, one page to read offline", writeHTML},
	{openAIName, ".jsonl", "one branch, as messages of OpenAI's Chat Completions", writeOpenAI},
	{anthropicName, ".json", "one branch, as a request of Anthropic's Messages", writeAnthropic},
	{shareGPTName, ".json", "one branch, as data sets have it", writeShareGPT},
	{claudeCodeName, ".jsonl", "all branches, as a session of Claude Code", writeClaudeCode},
	{piName, ".jsonl", "all branches, as a session of pi", writePi},
}

// export is one export under way.
type export struct {
	store   *chatctx.Store
	context *chatctx.ChatContext // nil: all
	opts    ExportOptions
	w       *bufio.Writer
}

// Export writes a context, or the whole store, in one of the ExportFormats. What is being written is read in short transactions: other
// programs go on meanwhile. ErrInvalid from chatctx for an unknown format or one that cannot hold what is asked for.
func Export(ctx context.Context, s *chatctx.Store, o ExportOptions, w io.Writer) error {
	f, err := exportFormat(firstOf(o.Format, nativeName))
	if err != nil {
		return err
	}
	x := &export{store: s, opts: o, w: bufio.NewWriterSize(w, 64<<10)}
	if o.All && f.Name != nativeName {
		return fmt.Errorf("%w: the format %s holds one context; name it", chatctx.ErrInvalid, f.Name)
	}
	if !o.All {
		if x.context, err = s.Context(ctx, o.Context); err != nil {
			return err
		}
	}
	if err := f.write(ctx, x); err != nil {
		return err
	}
	return x.w.Flush()
}

func exportFormat(name string) (ExportFormat, error) {
	var names []string
	for _, f := range ExportFormats {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return ExportFormat{}, fmt.Errorf("%w: no export format %q; there are %s", chatctx.ErrInvalid, name, strings.Join(names, ", "))
}

// bytesOf gives the bytes of a stored image or document, nil where the store does not have them.
func (x *export) bytesOf(ctx context.Context, h [32]byte) ([]byte, string, error) {
	data, mediaType, err := x.store.Artifact(ctx, h)
	if errors.Is(err, chatctx.ErrNotFound) {
		return nil, "", nil
	}
	return data, mediaType, err
}
