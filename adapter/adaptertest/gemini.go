package adaptertest

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
)

var (
	geminiName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$`)
	geminiTop   = []string{"contents!", "cachedContent", "generationConfig", "safetySettings", "serviceTier", "store", "systemInstruction", "toolConfig", "tools"}
	geminiData  = []string{"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"}
	geminiMedia = []string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf"}
)

// geminiTurn is a content, with its calls, responses and parts.
type geminiTurn struct {
	role             string
	calls, responses []object
	parts            []object
}

// ValidateGemini returns the violations of generateContent in a body for a model, which the body does not name; nil if there are none.
func ValidateGemini(model string, body []byte) error {
	j := &judge{}
	o := j.read(body)
	if o == nil {
		return j.err()
	}
	third := strings.HasPrefix(model, "gemini-3") || strings.HasPrefix(model, "gemini-4")
	j.keys("body", o, geminiTop...)
	if len(body) > 100<<20 || !third && len(body) > 20<<20 {
		j.wrongf("%d bytes", len(body))
	}
	j.geminiTools(o, third)
	if s, has := o["systemInstruction"]; has {
		if members(s) == nil || len(list(members(s)["parts"])) == 0 {
			j.wrongf("systemInstruction is no content")
		}
		for _, p := range list(members(s)["parts"]) {
			j.geminiPart(members(p), third)
		}
	}
	var turns []*geminiTurn
	for _, v := range list(o["contents"]) {
		turns = append(turns, j.geminiContent(members(v), third))
	}
	j.geminiTurns(turns)
	if third {
		j.geminiSignatures(turns)
	}
	return j.err()
}

func (j *judge) geminiContent(o object, third bool) *geminiTurn {
	j.keys("content", o, "role!", "parts!")
	t := &geminiTurn{role: text(o["role"])}
	if t.role != "user" && t.role != "model" {
		j.wrongf("role %q", t.role)
	}
	if len(list(o["parts"])) == 0 {
		j.wrongf("a content without parts")
	}
	for _, v := range list(o["parts"]) {
		p := members(v)
		j.geminiPart(p, third)
		t.parts = append(t.parts, p)
		if c := members(p["functionCall"]); c != nil {
			t.calls = append(t.calls, c)
		}
		if r := members(p["functionResponse"]); r != nil {
			t.responses = append(t.responses, r)
		}
	}
	if len(t.responses) > 0 && len(t.responses) != len(t.parts) {
		j.wrongf("responses among other parts")
	}
	if t.role == "model" && len(t.responses) > 0 || t.role == "user" && len(t.calls) > 0 {
		j.wrongf("a call or a response on the wrong side")
	}
	return t
}

func (j *judge) geminiPart(p object, third bool) {
	data := 0
	for k := range p {
		if slices.Contains(geminiData, k) {
			data++
		} else if k != "thought" && k != "thoughtSignature" {
			j.wrongf("part: unknown field %s", k)
		}
	}
	if data != 1 {
		j.wrongf("a part with %d data fields", data)
	}
	if s, has := p["text"]; has && (!isText(s) || j.isBlank(text(s))) {
		j.wrongf("blank text")
	}
	if s, has := p["thoughtSignature"]; has {
		if raw, err := base64.StdEncoding.DecodeString(text(s)); err != nil || len(raw) == 0 {
			j.wrongf("a signature that is no base64")
		}
	}
	if c := members(p["functionCall"]); c != nil {
		j.keys("functionCall", c, "id", "name!", "args")
		if a, has := c["args"]; has && members(a) == nil || !geminiName.MatchString(text(c["name"])) {
			j.wrongf("call %v: bad name, or args are no object", c["name"])
		}
	}
	if r := members(p["functionResponse"]); r != nil {
		j.keys("functionResponse", r, "id", "name!", "response!", "parts")
		if members(r["response"]) == nil || !geminiName.MatchString(text(r["name"])) {
			j.wrongf("response of %v: bad name, or no object", r["name"])
		}
		if r["parts"] != nil && !third {
			j.wrongf("parts in a response before Gemini 3")
		}
		for _, q := range list(r["parts"]) {
			j.geminiBlob(members(members(q)["inlineData"]))
		}
	}
	if b, has := p["inlineData"]; has {
		j.geminiBlob(members(b))
	}
	if f := members(p["fileData"]); f != nil {
		j.keys("fileData", f, "mimeType!", "fileUri!")
	}
}

func (j *judge) geminiBlob(b object) {
	j.keys("inlineData", b, "mimeType!", "data!")
	j.media("inlineData", text(b["mimeType"]), text(b["data"]), geminiMedia...)
}

// geminiTurns judges the order: the user comes first and last; calls come after the user, and their responses right after them.
func (j *judge) geminiTurns(turns []*geminiTurn) {
	if len(turns) == 0 {
		j.wrongf("no contents")
		return
	}
	if turns[0].role != "user" || len(turns[0].responses) > 0 {
		j.wrongf("does not begin with a user")
	}
	if turns[len(turns)-1].role != "user" {
		j.wrongf("does not end with a user")
	}
	for n, t := range turns {
		if len(t.calls) > 0 {
			if n == 0 || turns[n-1].role != "user" {
				j.wrongf("content %d: a call that does not follow a user", n)
			}
			if n+1 == len(turns) || len(turns[n+1].responses) != len(t.calls) {
				j.wrongf("content %d: %d calls, another number of responses", n, len(t.calls))
				continue
			}
			seen := map[string]bool{}
			for i, c := range t.calls {
				r := turns[n+1].responses[i]
				if r["name"] != c["name"] || r["id"] != c["id"] {
					j.wrongf("content %d: response %d is of another call", n, i)
				}
				if id := text(c["id"]); id != "" && seen[id] {
					j.wrongf("content %d: two calls have the id %s", n, id)
				} else {
					seen[id] = true
				}
			}
		}
		if len(t.responses) > 0 && (n == 0 || len(turns[n-1].calls) == 0) {
			j.wrongf("content %d: responses without calls before", n)
		}
	}
}

// geminiSignatures judges that the first call of each step has a signature. The API checks only the current turn; this checks all, since each turn was once the
// current one.
func (j *judge) geminiSignatures(turns []*geminiTurn) {
	for n, t := range turns {
		for _, p := range t.parts {
			if p["functionCall"] == nil {
				continue
			}
			if text(p["thoughtSignature"]) == "" {
				j.wrongf("content %d: its first call has no signature", n)
			}
			break
		}
	}
}

func (j *judge) geminiTools(o object, third bool) {
	names := map[string]bool{}
	for _, v := range list(o["tools"]) {
		for _, f := range list(members(v)["functionDeclarations"]) {
			d := members(f)
			j.keys("function", d, "name!", "description", "parametersJsonSchema")
			if name := text(d["name"]); !geminiName.MatchString(name) || names[name] {
				j.wrongf("function name %q is bad or doubled", name)
			}
			names[text(d["name"])] = true
			j.schema("function", d["parametersJsonSchema"])
		}
	}
	if _, has := o["tools"]; has && len(list(o["tools"])) == 0 {
		j.wrongf("tools is empty")
	}
	if c := members(members(o["toolConfig"])["functionCallingConfig"]); c != nil {
		mode := text(c["mode"])
		if len(names) == 0 {
			j.wrongf("toolConfig without tools")
		}
		if c["allowedFunctionNames"] != nil && mode != "ANY" && mode != "VALIDATED" {
			j.wrongf("allowedFunctionNames with mode %s", mode)
		}
		for _, n := range list(c["allowedFunctionNames"]) {
			if !names[text(n)] {
				j.wrongf("allowed function %v is not there", n)
			}
		}
	}
	g := members(o["generationConfig"])
	j.within(g, "temperature", 0, 2)
	j.within(g, "topP", 0, 1)
	j.within(g, "maxOutputTokens", 1, 1e9)
	if len(list(g["stopSequences"])) > 5 {
		j.wrongf("%d stop sequences", len(list(g["stopSequences"])))
	}
	if t := members(g["thinkingConfig"]); t["thinkingLevel"] != nil && (t["thinkingBudget"] != nil || !third) {
		j.wrongf("thinkingLevel with a budget, or before Gemini 3")
	}
}
