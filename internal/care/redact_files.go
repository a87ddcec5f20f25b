package care

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/charset"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// noText is why a secret in a file stays that is no text.
const noText = "the file is no text, and would be broken: purge its message"

// artifact redacts an attached file.
func (r *redactor) artifact(p *pool.Part, left string) {
	if p.SHA256 == (pool.Hash{}) || p.Type == pool.TextPart || r.err != nil { // artifacts of long texts are redacted with their messages
		return
	}
	data, kind, err := poolstore.Artifact(r.tx, p.SHA256)
	if err != nil {
		r.err = err
		return
	}
	if data, changed := r.file(p.SHA256, data, cmp.Or(p.MediaType, kind), left); changed {
		p.Data = data
		r.err = cmp.Or(r.err, r.tx.Delete(base.LooseBucket, p.SHA256[:]))
	}
}

// file redacts the bytes of a file: of text in its encoding. Other bytes are searched as they are. If nothing is found in them, they count as not searched,
// since they may be packed.
func (r *redactor) file(hash pool.Hash, data []byte, mediaType, left string) (out []byte, changed bool) {
	text, isText := charset.Decode(data, mediaType)
	if isText {
		secrets := r.secrets("file", left, text.Text)
		if len(secrets) > 0 && left == "" {
			spans := make([]charset.Span, len(secrets))
			for i, s := range secrets {
				spans[i] = charset.Span{From: s.From, To: s.To}
			}
			data, changed = text.Replace(spans, base.RedactedMark), true
			r.hit, r.put = true, true
		}
		if left != "" || text.Text == string(data) {
			return data, changed
		}
	}
	before := len(r.found)
	r.within("file", noText, data)
	if isText {
		return data, changed
	}
	for _, run := range wideRuns(data) {
		if len(r.found) == before { // one names the file
			r.secrets("file", noText, run)
		}
	}
	if len(r.found) == before {
		r.blind[hash] = fileKind(data, mediaType)
	}
	return data, changed
}

// wideRuns returns the runs of printable ASCII that are written with two or four bytes a character, as in UTF-16 and UTF-32.
func wideRuns(data []byte) (runs []string) {
	for _, width := range []int{2, 4} {
		zeros := make([]byte, width-1)
		for _, big := range []bool{false, true} {
			for first := range width {
				var run []byte
				for at := first; at+width <= len(data); at += width {
					c, rest := data[at], data[at+1:at+width]
					if big {
						c, rest = data[at+width-1], data[at:at+width-1]
					}
					if (c >= ' ' && c < 0x7f || c == '\t' || c == '\n' || c == '\r') && bytes.Equal(rest, zeros) {
						run = append(run, c)
						continue
					}
					runs, run = appendRun(runs, run), nil
				}
				runs = appendRun(runs, run)
			}
		}
	}
	return runs
}

func appendRun(runs []string, run []byte) []string {
	if len(run) < 4 {
		return runs
	}
	return append(runs, string(run))
}

// fileKind names a kind of files by their media type, else by their beginning.
func fileKind(data []byte, mediaType string) string {
	for _, k := range []struct{ kind, types, magic string }{
		{"image", "image/", "\x89PNG \xff\xd8\xff GIF8"},
		{"sound", "audio/", "ID3 OggS"},
		{"video", "video/", "\x1aE\xdf\xa3"},
		{"PDF", "application/pdf", "%PDF-"},
		{"document", "application/msword application/vnd.", "\xd0\xcf\x11\xe0"},
		{"archive", "application/zip application/gzip application/x-", "PK\x03\x04 \x1f\x8b 7z\xbc\xaf Rar! \x28\xb5\x2f\xfd"},
	} {
		for _, t := range strings.Fields(k.types) {
			if strings.HasPrefix(mediaType, t) {
				return k.kind
			}
		}
		for _, m := range strings.Split(k.magic, " ") {
			if bytes.HasPrefix(data, []byte(m)) && (mediaType == "" || mediaType == "application/octet-stream") {
				return k.kind
			}
		}
	}
	return "file"
}
