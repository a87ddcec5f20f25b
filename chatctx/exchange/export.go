package exchange

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/base"
)

// ExportOptions say what to write.
type ExportOptions struct {
	Format  string // a name of ExportFormats(); "" means chatctx, the store's own
	Context string // a reference; "" means the current one
	Branch  string // for formats with one branch; "" means the active one
	// Contexts, if not empty, are written instead of one; only for chatctx.
	Contexts []chatctx.ID
	All      bool // every context that is not in the trash, instead of one; only for chatctx
	Hidden   bool // also hidden messages, if the format is for reading
	// LeftOut, if not nil, gets what the format cannot hold, once for each kind.
	LeftOut func(what string)
}

// ExportFormat is a format that can be written.
type ExportFormat struct {
	Name      string
	Extension string // of its files, with the dot
	What      string // its content, in a few words
	// Write writes w.Context to w.Out, which Export flushes.
	Write func(ctx context.Context, w *Writing) error
}

// exportFormats are those that need only this package. The first is the store's own, which loses nothing.
var exportFormats = []ExportFormat{
	{nativeName, ".jsonl", "conversations with all branches, lossless, to import again", writeNative},
	{"markdown", ".md", "one branch, to read", writeMarkdown},
	{openAIName, ".jsonl", "one branch, as messages of OpenAI's Chat Completions", writeOpenAI},
	{anthropicName, ".json", "one branch, as a request of Anthropic's Messages", writeAnthropic},
	{shareGPTName, ".json", "one branch, as data sets have it", writeShareGPT},
	{claudeCodeName, ".jsonl", "all branches, as a session of Claude Code", writeClaudeCode},
	{piName, ".jsonl", "all branches, as a session of pi", writePi},
}

// Writing is a running export. Context is nil only for the store's own format; then it writes Options.Contexts, or all.
type Writing struct {
	Store   *chatctx.Store
	Context *chatctx.ChatContext
	Options ExportOptions
	Out     *bufio.Writer // keeps the first error for Export, so a format need not check each write

	leftOut map[string]bool
}

// leaveOut reports once what the format cannot hold.
func (w *Writing) leaveOut(what string) {
	if w.leftOut[what] {
		return
	}
	if w.leftOut == nil {
		w.leftOut = map[string]bool{}
	}
	w.leftOut[what] = true
	if w.Options.LeftOut != nil {
		w.Options.LeftOut(what)
	}
}

// Export writes a context, or the whole store, in one of the ExportFormats. It reads in short transactions, so other programs go on meanwhile. It is a
// chatctx.ErrInvalid if the format is unknown or cannot hold what is requested.
func Export(ctx context.Context, s *chatctx.Store, o ExportOptions, w io.Writer) error {
	f, err := exportFormat(firstOf(o.Format, nativeName))
	if err != nil {
		return err
	}
	x := &Writing{Store: s, Options: o, Out: bufio.NewWriterSize(w, 64<<10)}
	several := o.All || len(o.Contexts) > 0
	if several && f.Name != nativeName {
		return base.Invalid("the format %s holds one conversation: name one", f.Name)
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
	return ExportFormat{}, base.Invalid("there is no export format %q: use one of %s", name, strings.Join(names, ", "))
}

// Artifact returns the bytes of a stored image or document and their media type; nil if the store lacks them.
func (x *Writing) Artifact(ctx context.Context, h [32]byte) ([]byte, string, error) {
	data, mediaType, err := x.Store.Artifact(ctx, h)
	if errors.Is(err, chatctx.ErrNotFound) {
		return nil, "", nil
	}
	return data, mediaType, err
}
