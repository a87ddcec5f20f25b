package exchange

import (
	"path"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Google AI Studio's prompts are files of Google Drive without an extension: a sequence of chunks, where consecutive chunks of one role are one message. Forks
// are other files; the chunks name them.

const aiStudioName = "gemini-aistudio"

func detectAIStudio(h *head) bool {
	return h.any(func(v value) bool { return v.get("chunkedPrompt").is(objectKind) })
}

func readAIStudio(r *reading) error {
	return r.eachItem("", func(at place, v value) error {
		chunks := v.at("chunkedPrompt", "chunks")
		if !chunks.is(arrayKind) {
			r.skipContext(0, at, "a prompt without chunks")
			return nil
		}
		name := path.Base(r.file.path)
		s := &aiStudio{r: r, t: r.thread(at), at: at, model: strings.TrimPrefix(v.at("runSettings", "model").str(), "models/"), parents: map[string]string{}}
		s.t.system(aiStudioSystem(v.get("systemInstruction")))
		in := &record.Incoming{Title: firstOf(v.get("displayName").str(), strings.TrimSuffix(name, ".json")),
			Created: v.get("createTime").time(), Updated: v.get("updateTime").time()}
		for c := range chunks.items() {
			s.chunk(c)
		}
		w := objectWriter{}
		w.addIf(true, "runSettings", v.get("runSettings"))
		w.addIf(true, "pendingInputs", v.at("chunkedPrompt", "pendingInputs"))
		w.addRaw("links", s.links.done())
		in.AppData = appData(aiStudioName, w.done())
		r.about(in, v, append(allTexts(contentParts(v.at("systemInstruction", "parts"))), v.at("systemInstruction", "text").str())...)
		if in.Conversation = v.get("id").str(); in.Conversation == "" {
			in.Conversation = s.r.treeID([]byte(name), s.t.records)
		}
		return s.t.emit(in, s.t.last())
	})
}

func aiStudioSystem(v value) string {
	if s := v.get("text").str(); s != "" {
		return s
	}
	return textOf(contentParts(v.get("parts")))
}

type aiStudio struct {
	r       *reading
	t       *thread
	at      place
	model   string
	n       int
	now     *chatctx.Message  // the message that gets the chunks
	role    string            // its role
	parents map[string]string // ids of chunks, to the messages that contain them
	links   objectWriter
}

func (s *aiStudio) chunk(v value) {
	s.n++
	at := s.at.in("chunk " + itoa(s.n))
	role := v.get("role").str()
	if !v.is(objectKind) || role == "" {
		s.t.skip(at, "", "", "the chunk has no role and is left out")
		return
	}
	id := firstOf(v.get("id").str(), itoa(s.n))
	parent, forked := s.parents[v.at("branchParent", "id").str()]
	if s.now == nil || role != s.role || forked {
		if !forked {
			parent = s.t.last()
		}
		m := &chatctx.Message{Created: v.get("createTime").time()}
		roleOf(m, role)
		if m.Role == pool.Assistant {
			m.Meta.Provider, m.Meta.Model = geminiProvider, s.model
		}
		s.t.add(at, id, parent, m)
		s.now, s.role = m, role
	} else {
		s.r.structural(1)
	}
	s.parents[id] = s.t.last()
	for _, k := range []string{"branchParent", "branchChildren"} {
		if link := v.get(k); link.get("promptId").is(stringKind) || link.first().get("promptId").is(stringKind) {
			s.links.addRaw(k, link.keep())
		}
	}
	s.content(v)
	if raw := source(s.now).Raw; raw == nil || !v.broken() {
		s.r.whole(at, v, s.now)
	}
}

func (s *aiStudio) content(v value) {
	m := s.now
	m.Meta.FinishReason = firstOf(v.get("finishReason").str(), m.Meta.FinishReason)
	m.Meta.Error = firstOf(v.get("errorMessage").str(), m.Meta.Error)
	if n := v.get("tokenCount").count(); n != nil && m.Role == pool.Assistant {
		if m.Meta.OutputTokens != nil {
			*n += *m.Meta.OutputTokens
		}
		m.Meta.OutputTokens = n
	}
	if text := v.get("text"); text.str() != "" {
		p := textPart(text.str())
		sig := v.get("thoughtSignatures").first().str()
		for part := range v.get("parts").items() {
			sig = firstOf(sig, part.get("thoughtSignature").str())
		}
		if v.get("isThought").bool() {
			p.Type = pool.ThinkingPart
		}
		if sig != "" || p.Type == pool.ThinkingPart {
			p.Signature, p.Provider, p.Model = sig, geminiProvider, s.model
		}
		m.Content = append(m.Content, p)
	} else {
		for part := range v.get("parts").items() {
			m.Content = append(m.Content, geminiPart(m, part))
		}
	}
	for _, k := range []string{"inlineFile", "inlineImage", "inlineData"} {
		if d := v.get(k); d.is(objectKind) {
			m.Content = append(m.Content, aiStudioData(d))
		}
	}
	for _, k := range []string{"driveDocument", "driveImage", "driveVideo", "driveAudio"} {
		if d := v.get(k); d.is(objectKind) {
			m.Content = append(m.Content, pool.Part{Type: "file_reference", Name: d.get("name").str(), Raw: d.keep()})
		}
	}
	for _, k := range []string{"youtubeVideo", "executableCode", "codeExecutionResult"} {
		if d := v.get(k); d.is(objectKind) {
			w := objectWriter{}
			w.addRaw(k, d.keep())
			m.Content = append(m.Content, pool.Part{Type: k, Provider: geminiProvider, Raw: w.done()})
		}
	}
}

func aiStudioData(d value) pool.Part {
	if b := base64Bytes(d.get("data").str()); len(b) > 0 {
		return dataPart(pool.DocumentPart, d.get("mimeType").str(), d.get("name").str(), b)
	}
	return unknownPart(d)
}
