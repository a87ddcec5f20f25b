package operation

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx/exchange"
	"github.com/chatctx/chatctx/internal/base"
)

func init() { Register(Group{Heading: "Other tools' files", Of: exportOperations}) }

func exportOperations() []*Operation {
	return []*Operation{
		Define("export", "GET /contexts/{context}/export", Read, "export a conversation as a file", export).Bytes(),
		Define("export.formats", "GET /export/formats", Read, "list the formats of export", exportFormats),
	}
}

type exportParams struct {
	Conversation
	Branch string `json:"branch" doc:"the branch to export, for formats that hold only one"`
	Format string `json:"format,omitempty" doc:"the format; by default chatctx, which loses nothing"`
	Hidden bool   `json:"hidden,omitempty" doc:"include hidden messages in formats for reading"`
}

// mediaTypes are the media types of formats, by extension.
var mediaTypes = map[string]string{".html": "text/html; charset=utf-8", ".md": "text/markdown; charset=utf-8", ".json": "application/json", ".jsonl": "application/x-ndjson"}

func export(r *Request, in *exportParams) (written, error) {
	format := in.Format
	all := exchange.ExportFormats()
	if format == "" {
		format = all[0].Name
	}
	i := slices.IndexFunc(all, func(f exchange.ExportFormat) bool { return f.Name == format })
	if i < 0 {
		return written{}, base.Invalid("no format %q", format)
	}
	c, err := r.Store.Context(r.Ctx, in.Context)
	if err != nil {
		return written{}, err
	}
	info, err := c.Info(r.Ctx)
	if err == nil {
		_, err = c.Branch(r.Ctx, in.Branch) // formats with all branches would ignore a missing one
	}
	if err != nil {
		return written{}, err
	}
	out := written{MediaType: mediaTypes[all[i].Extension], Name: PlainName(info.Title) + all[i].Extension}
	out.MediaType = cmp.Or(out.MediaType, "application/octet-stream")
	w := &late{open: func() (io.Writer, error) { return r.Write(out.MediaType, out.Name) }}
	err = exchange.Export(r.Ctx, r.Store, exchange.ExportOptions{Format: format, Context: c.ID.String(), Branch: in.Branch, Hidden: in.Hidden}, w)
	out.Size = w.n
	return out, err
}

// late opens its writer with the first bytes, so that an error before them can still be reported.
type late struct {
	open func() (io.Writer, error)
	w    io.Writer
	n    int64
}

func (l *late) Write(p []byte) (int, error) {
	if l.w == nil {
		var err error
		if l.w, err = l.open(); err != nil {
			return 0, err
		}
	}
	n, err := l.w.Write(p)
	l.n += int64(n)
	return n, err
}

// formatInfo is a format for exports.
type formatInfo struct {
	Format    string `json:"format"`
	Extension string `json:"extension"`
	What      string `json:"what"`
}

func exportFormats(*Request, *struct{}) (List[formatInfo], error) {
	return ListEach(exchange.ExportFormats(), nil, func(f exchange.ExportFormat) formatInfo { return formatInfo{f.Name, f.Extension, f.What} })
}

// PlainName returns a safe name for a file: the last part of its path, without characters that are special to a file system or a terminal.
func PlainName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`<>:"|?*`, r) || r == 0x7f {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	if name = strings.Trim(name, ". "); name == "" || len(name) > 200 {
		return "upload"
	}
	return name
}
