package exchange

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
)

// What other tools call projects, folders, tags, archived and pinned become labels of the context, beside the name of the format that it is from.

// markKeys are the members of a conversation's record that mark it, by the label that they mean.
var markKeys = map[string]string{
	"archived": "is_archived|archived|isArchived",
	"pinned":   "pinned|is_pinned|isPinned|is_starred|isStarred|starred|is_favorite|favorite",
}

// placeKeys name what a conversation lies in: a name, or a path of which the last part counts.
var placeKeys = "project.name|projectName|project_name|folder.name|folderName|workspace.name|project|folder|cwd|directory|working_dir|workspaceDirectory"

// labelsOf reads the labels of a conversation from its record. It takes nothing: what it reads is kept as it is too.
func labelsOf(v value) []string {
	var out []string
	for label, paths := range markKeys {
		if x := v.pick(paths); x.is(boolKind) && x.raw()[0] == 't' || x.is(numberKind) && string(x.raw()) == "1" {
			out = append(out, label)
		}
	}
	if x := v.pick(placeKeys); x.is(stringKind) {
		out = append(out, placeLabel(x.str()))
	}
	for tag := range v.pick("meta.tags|tags").items() {
		out = append(out, firstOf(tag.str(), tag.get("name").str()))
	}
	return out
}

// placeLabel is the label of a project or folder.
func placeLabel(name string) string {
	if name = path.Base(strings.ReplaceAll(name, `\`, "/")); name == "." || name == "/" {
		return ""
	}
	return name
}

// setLabels makes of what a file says labels that can be, with the format's name, each once and in order.
func setLabels(in *chatctx.Incoming) {
	if in.Format == nativeName {
		return
	}
	var out []string
	for _, l := range append(in.Labels, in.Format) {
		l = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) || r == unicode.ReplacementChar {
				return ' '
			}
			return r
		}, show.Clip(l, 60))
		if l = strings.TrimLeft(strings.TrimSpace(l), "-"); strings.TrimSpace(l) != l || l == "" {
			continue
		}
		if len(out) < 20 {
			out = append(out, l)
		}
	}
	slices.Sort(out)
	in.Labels = slices.Compact(out)
}
