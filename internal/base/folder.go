package base

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/jsontree"
)

// folderNames are the members of app data in which an import keeps the folder that a conversation was held in: its path, or the SHA-256 of it.
var folderNames = []string{"cwd", "directory", "working_dir", "workspaceDirectory", "projectHash"}

// FolderData is the name of the app data, and FolderMember of the member, that name the folder of a conversation which this program made.
const FolderData, FolderMember = "chatctx", "cwd"

// maxParents bounds the way from a sub-context to the conversation that knows its folder.
const maxParents = 20

// InFolder reports whether a conversation was held in a folder, which may have several names. A sub-context without a folder was held where its parent was.
func InFolder(tx kv.Tx, rec *ContextRecord, names []string) (bool, error) {
	for range maxParents {
		if has := foldersOf(rec); len(has) > 0 {
			return slices.ContainsFunc(names, func(name string) bool { return isFolder(has, name) }), nil
		}
		parent, _, err := GetContext(tx, rec.Parent)
		if parent == nil || err != nil {
			return false, err
		}
		rec = parent
	}
	return false, nil
}

func isFolder(has []string, name string) bool {
	name = cleanFolder(name)
	sum := sha256.Sum256([]byte(name))
	return name != "" && (slices.Contains(has, name) || slices.Contains(has, hex.EncodeToString(sum[:])))
}

// cleanFolder returns a path in one spelling, whichever system it is of.
func cleanFolder(path string) string {
	path = strings.ReplaceAll(strings.TrimPrefix(path, "file://"), `\`, "/")
	if short := strings.TrimRight(path, "/"); short != "" {
		return short
	}
	return path
}

// foldersOf returns what a conversation itself says of its folder: the setting for its tools, else what the program that held it had noted.
func foldersOf(rec *ContextRecord) (out []string) {
	if path, ok := jsontree.Text(rec.Settings["calls.folder"]); ok && path != "" {
		return []string{cleanFolder(path)}
	}
	for _, raw := range rec.AppData {
		if path := folderIn(raw); path != "" {
			out = append(out, cleanFolder(path))
		}
	}
	return out
}

// folderIn looks for a folder in app data: at its top, in about, and in the first of records that has one.
func folderIn(raw json.RawMessage) string {
	var own, about, records string
	eachMember(raw, func(name string, v []byte) {
		switch {
		case slices.Contains(folderNames, name):
			if path, ok := jsontree.Text(v); ok && own == "" {
				own = path
			}
		case name == "about":
			about = folderIn(v)
		case name == "records" && v[0] == '[':
			_ = jsontree.Each(v, func(_, one []byte) error {
				if records == "" {
					records = folderIn(one)
				}
				return nil
			})
		case name == "payload":
			records = folderIn(v)
		}
	})
	for _, path := range []string{own, about, records} {
		if path != "" {
			return path
		}
	}
	return ""
}

func eachMember(raw []byte, fn func(name string, v []byte)) {
	if !json.Valid(raw) || raw[0] != '{' {
		return
	}
	_ = jsontree.Each(raw, func(name, v []byte) error {
		text, _ := jsontree.Text(name)
		fn(text, v)
		return nil
	})
}
