package exchange

import (
	"path"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/pool"
)

// asset returns the part for a pointer of ChatGPT: the file of the export whose name begins with the asset's id. If the export lacks it, the pointer is kept
// unchanged.
func (c *chatgpt) asset(v value) pool.Part {
	id := assetID(v.get("asset_pointer").str())
	if p, ok := c.load(id); ok {
		p.Raw = v.keep()
		return p
	}
	return unknownPart(v)
}

// attachments returns the files of a message that are not among its parts yet, if the export has them.
func (c *chatgpt) attachments(v value, have []pool.Part) []pool.Part {
	var parts []pool.Part
	for a := range v.at("metadata", "attachments").items() {
		id := a.get("id").str()
		if id == "" || slices.ContainsFunc(have, func(p pool.Part) bool { return strings.Contains(string(p.Raw), id) }) {
			continue
		}
		if p, ok := c.load(id); ok {
			p.Name = firstOf(a.get("name").str(), p.Name)
			p.MediaType = firstOf(a.get("mime_type").str(), p.MediaType)
			p.Raw = a.keep()
			parts = append(parts, p)
		}
	}
	return parts
}

// load reads the file of an asset.
func (c *chatgpt) load(id string) (pool.Part, bool) {
	f := c.r.assetFile(id)
	if f == nil {
		return pool.Part{}, false
	}
	b, err := f.read(c.r.limits.Asset)
	if err != nil {
		c.r.warn(c.at, "the file %s of a message cannot be read: %v", f.path, err)
		return pool.Part{}, false
	}
	return filePart(path.Base(f.path), b), len(b) > 0
}

// filePart returns bytes as an image or document, by their content.
func filePart(name string, b []byte) pool.Part {
	p := pool.Part{Type: pool.DocumentPart, Name: name, Data: b, Size: int64(len(b))}
	p.MediaType = pool.SniffMediaType(b)
	if strings.HasPrefix(p.MediaType, "image/") {
		p.Type = pool.ImagePart
	}
	return p
}

// assetID returns the id in file-service://file-ABC, sediment://file_0123#page and the like.
func assetID(pointer string) string {
	if _, rest, ok := strings.Cut(pointer, "://"); ok {
		pointer = rest
	}
	if i := strings.IndexAny(pointer, "#?"); i >= 0 {
		pointer = pointer[:i]
	}
	return pointer
}

// assetFile returns the file whose name, without its folders, is id or begins with it; nil if there is none.
func (r *reading) assetFile(id string) *file {
	if id == "" || r.file.within == nil {
		return nil
	}
	if r.assets == nil {
		r.assets = newAssets(r.file.within)
	}
	name := r.assets.find(id)
	if name == "" {
		return nil
	}
	f, err := r.file.sibling(name)
	if err != nil {
		return nil
	}
	return f
}

// assets are the files of a container, sorted by name.
type assets []struct{ base, path string }

func newAssets(c container) *assets {
	names, _ := c.list() // a container that cannot be listed has no files
	a := make(assets, len(names))
	for i, n := range names {
		a[i].base, a[i].path = path.Base(n), n
	}
	slices.SortFunc(a, func(x, y struct{ base, path string }) int { return strings.Compare(x.base, y.base) })
	return &a
}

// find returns the path of the first file whose name is id, or id followed by something that cannot belong to an id.
func (a assets) find(id string) string {
	i, _ := slices.BinarySearchFunc(a, id, func(x struct{ base, path string }, id string) int { return strings.Compare(x.base, id) })
	for ; i < len(a) && strings.HasPrefix(a[i].base, id); i++ {
		if rest := a[i].base[len(id):]; rest == "" || strings.IndexByte("-._", rest[0]) >= 0 {
			return a[i].path
		}
	}
	return ""
}
