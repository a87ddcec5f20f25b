package exchange

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/chatctx/record"
)

// Projects, folders, tags, archived and pinned of other tools become labels of the context, besides the name of its format.

// markKeys maps a label to the members of a conversation's record that mean it.
var markKeys = map[string]string{
	"archived": "is_archived|archived|isArchived",
	"pinned":   "pinned|is_pinned|isPinned|is_starred|isStarred|starred|is_favorite|favorite",
}

// placeKeys name the place of a conversation: a name, or a path whose last part counts.
var placeKeys = "project.name|projectName|project_name|folder.name|folderName|workspace.name|project|folder|cwd|directory|working_dir|workspaceDirectory"

// labelsOf returns the labels of a conversation from its record. It does not mark what it reads as taken, so that is kept unchanged too.
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

// placeLabel returns the label of a project or folder.
func placeLabel(name string) string {
	if name = path.Base(strings.ReplaceAll(name, `\`, "/")); name == "." || name == "/" {
		return ""
	}
	return name
}

// setLabels turns the labels of a file into valid ones, adds the format's name, and sorts them without duplicates.
func setLabels(in *record.Incoming) {
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
