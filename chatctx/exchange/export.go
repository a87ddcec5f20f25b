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
	Format  string // a name of ExportFormats(); "": chatctx, the store's own
	Context string // a reference; "": the current one
	Branch  string // for formats that hold one branch; "": the active one
	// Contexts, if there are any, are written instead of one: chatctx only.
	Contexts []chatctx.ID
	All      bool // every context that is not in the trash, instead of one: chatctx only
	Hidden   bool // hidden messages too, where the format is for reading
}

// ExportFormat is a format that can be written.
type ExportFormat struct {
	Name      string
	Extension string // that files of it have, with the point
	What      string // what it holds, in a few words
	// Write writes w.Context to w.Out, from which Export sends on what is left.
	Write func(ctx context.Context, w *Writing) error
}

// exportFormats are those that need nothing but this package. The first is the store's own, which loses nothing.
var exportFormats = []ExportFormat{
	{nativeName, ".jsonl", "contexts with all branches, lossless, to import again", writeNative},
	{"markdown", ".md", "one branch, to read", writeMarkdown},
	{openAIName, ".jsonl", "one branch, as messages of OpenAI's Chat Completions", writeOpenAI},
	{anthropicName, ".json", "one branch, as a request of Anthropic's Messages", writeAnthropic},
	{shareGPTName, ".json", "one branch, as data sets have it", writeShareGPT},
	{claudeCodeName, ".jsonl", "all branches, as a session of Claude Code", writeClaudeCode},
	{piName, ".jsonl", "all branches, as a session of pi", writePi},
}

// Writing is one export under way. Context is nil only for the store's own format, where it means those of Options.Contexts, or all.
type Writing struct {
	Store   *chatctx.Store
	Context *chatctx.ChatContext
	Options ExportOptions
	Out     *bufio.Writer // keeps the first error for Export: a writer need not look at each
}

// Export writes a context, or the whole store, in one of the ExportFormats. What is being written is read in short transactions: other
// programs go on meanwhile. ErrInvalid from chatctx for an unknown format or one that cannot hold what is asked for.
func Export(ctx context.Context, s *chatctx.Store, o ExportOptions, w io.Writer) error {
	f, err := exportFormat(firstOf(o.Format, nativeName))
	if err != nil {
		return err
	}
	x := &Writing{Store: s, Options: o, Out: bufio.NewWriterSize(w, 64<<10)}
	several := o.All || len(o.Contexts) > 0
	if several && f.Name != nativeName {
		return fmt.Errorf("%w: the format %s holds one context; name it", chatctx.ErrInvalid, f.Name)
	}
	if !several {
		if x.Context, err = s.Context(ctx, o.Context); err != nil {
			return err
		}
	}
	if err := f.Write(ctx, x); err != nil {
		return err
	}
	return x.Out.Flush()
}

func exportFormat(name string) (ExportFormat, error) {
	var names []string
	for _, f := range ExportFormats() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return ExportFormat{}, chatctx.Invalid("no export format %q; there are %s", name, strings.Join(names, ", "))
}

// Artifact gives the bytes of a stored image or document and their media type; nil where the store does not have them.
func (x *Writing) Artifact(ctx context.Context, h [32]byte) ([]byte, string, error) {
	data, mediaType, err := x.Store.Artifact(ctx, h)
	if errors.Is(err, chatctx.ErrNotFound) {
		return nil, "", nil
	}
	return data, mediaType, err
}
