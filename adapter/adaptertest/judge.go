package adaptertest

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // so that images can be judged
	_ "image/jpeg" // so that images can be judged
	_ "image/png"  // so that images can be judged
	"net/http"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chatctx/chatctx/adapter"
)

// Validate returns the violations of a provider's rules in a body, nil if there are none. model is the model of the request, if the body does not name it.
func Validate(provider, model string, body []byte) error {
	if judge := judges[provider]; judge != nil {
		return judge(model, body)
	}
	return fmt.Errorf("no validator for %q", provider)
}

// judges are the validators of this module's providers.
var judges = map[string]func(model string, body []byte) error{
	adapter.Anthropic: func(_ string, body []byte) error { return ValidateAnthropic(body) },
	adapter.OpenAI:    func(_ string, body []byte) error { return ValidateOpenAI(body) },
	adapter.Responses: func(_ string, body []byte) error { return ValidateResponses(body) },
	adapter.Gemini:    ValidateGemini,
	adapter.Ollama:    func(_ string, body []byte) error { return ValidateOllama(body) },
}

// judge collects the violations in a body, at most 20.
type judge struct{ wrong []error }

func (j *judge) wrongf(format string, args ...any) {
	if len(j.wrong) < 20 {
		j.wrong = append(j.wrong, fmt.Errorf(format, args...))
	}
}

func (j *judge) err() error { return errors.Join(j.wrong...) }

type object = map[string]any

// read decodes a body, and judges the rules for all: UTF-8, one JSON object, no half surrogate pairs.
func (j *judge) read(body []byte) object {
	if !utf8.Valid(body) {
		j.wrongf("the body is no UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var o object
	if err := d.Decode(&o); err != nil {
		j.wrongf("the body is no JSON object: %v", err)
		return nil
	}
	if d.More() {
		j.wrongf("more than one value")
	}
	if loneSurrogate(body) {
		j.wrongf("half a surrogate pair")
	}
	return o
}

var surrogate = regexp.MustCompile(`\\+u[dD][89a-fA-F][0-9a-fA-F]{2}`)

// loneSurrogate reports whether a body has an escape of half a surrogate pair.
func loneSurrogate(body []byte) bool {
	pending := -1 // where a low half must follow
	for _, m := range surrogate.FindAllIndex(body, -1) {
		slashes := bytes.Count(body[m[0]:m[1]], []byte(`\`))
		if slashes%2 == 0 {
			continue
		}
		high := strings.ContainsRune("89aAbB", rune(body[m[1]-3]))
		start := m[1] - 6
		switch {
		case high && pending >= 0, !high && pending != start:
			return true
		case high:
			pending = m[1]
		default:
			pending = -1
		}
	}
	return pending >= 0
}

// keys judges that an object has no other members than these, and has all whose name here ends in an exclamation mark.
func (j *judge) keys(where string, o object, allowed ...string) {
	known := map[string]bool{}
	for _, k := range allowed {
		name, required := strings.CutSuffix(k, "!")
		known[name] = true
		if _, has := o[name]; required && !has {
			j.wrongf("%s: %s is missing", where, name)
		}
	}
	for k := range o {
		if !known[k] {
			j.wrongf("%s: unknown field %s", where, k)
		}
	}
}

func list(v any) []any     { l, _ := v.([]any); return l }
func text(v any) string    { s, _ := v.(string); return s }
func members(v any) object { o, _ := v.(object); return o }
func isText(v any) bool    { _, ok := v.(string); return ok }

func number(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

// within judges that a number, if present, is in a range.
func (j *judge) within(o object, key string, from, to float64) {
	v, has := o[key]
	if !has {
		return
	}
	if n, ok := number(v); !ok || n < from || n > to {
		j.wrongf("%s is %v, not in %g to %g", key, v, from, to)
	}
}

func (j *judge) isBlank(s string) bool { return strings.TrimFunc(s, unicode.IsSpace) == "" }

func endsInSpace(s string) bool { return strings.TrimRightFunc(s, unicode.IsSpace) != s }

// media judges base64 bytes: they can be decoded, and have the type that they claim. It returns the bytes.
func (j *judge) media(where, mediaType, data string, allowed ...string) []byte {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(raw) == 0 {
		j.wrongf("%s: bad or empty base64", where)
		return nil
	}
	ok := false
	for _, a := range allowed {
		ok = ok || a == mediaType
	}
	if !ok {
		j.wrongf("%s: media type %q is not taken", where, mediaType)
	}
	found, _, _ := strings.Cut(http.DetectContentType(raw), ";")
	if strings.HasPrefix(mediaType, "image/") && found != mediaType || mediaType == "application/pdf" && found != mediaType {
		j.wrongf("%s: said to be %s, is %s", where, mediaType, found)
	}
	return raw
}

// pixels returns the longer side of an image, 0 if it is unknown.
func pixels(raw []byte) int {
	if c, _, err := image.DecodeConfig(bytes.NewReader(raw)); err == nil {
		return max(c.Width, c.Height)
	}
	if len(raw) >= 30 && string(raw[8:16]) == "WEBPVP8X" {
		w := binary.LittleEndian.Uint32(raw[24:]) & 0xffffff
		h := binary.LittleEndian.Uint32(raw[27-1:]) >> 8
		return int(max(w, h)) + 1
	}
	return 0
}

func isWeb(u string) bool { return strings.HasPrefix(u, "http://") || strings.HasPrefix(u, "https://") }

// dataURL splits a base64 data URL.
func dataURL(u string) (mediaType, data string, ok bool) {
	rest, ok := strings.CutPrefix(u, "data:")
	if !ok {
		return "", "", false
	}
	mediaType, data, ok = strings.Cut(rest, ";base64,")
	return mediaType, data, ok
}

// schema judges a JSON Schema of arguments: that of an object, without combined schemas at its top, and with items for each array.
func (j *judge) schema(where string, v any) {
	o := members(v)
	if text(o["type"]) != "object" {
		j.wrongf("%s: its type is not object", where)
	}
	for _, k := range []string{"oneOf", "anyOf", "allOf"} {
		if _, has := o[k]; has {
			j.wrongf("%s: %s at the top", where, k)
		}
	}
	if p, has := o["properties"]; has && members(p) == nil {
		j.wrongf("%s: properties is no object", where)
	}
	j.arrays(where, o)
}

func (j *judge) arrays(where string, o object) {
	if text(o["type"]) == "array" && o["items"] == nil && o["prefixItems"] == nil {
		j.wrongf("%s: an array without items", where)
	}
	for _, p := range members(o["properties"]) {
		j.arrays(where, members(p))
	}
	if items := members(o["items"]); items != nil {
		j.arrays(where, items)
	}
}

// claude returns the version in a Claude model's name: major*100+minor, 0 for other models, 9999 for a Claude without one.
func claude(model string) int {
	if !strings.Contains(model, "claude") {
		return 0
	}
	m := regexp.MustCompile(`-(\d{1,2})(?:[-.](\d{1,2}))?(?:-|@|$)`).FindStringSubmatch(model)
	if m == nil {
		return 9999
	}
	var major, minor int
	_, _ = fmt.Sscan(m[1], &major)
	_, _ = fmt.Sscan(m[2], &minor)
	return major*100 + minor
}
