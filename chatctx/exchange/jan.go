package exchange

import "path"

// Jan's messages.jsonl has a line for each message of a thread; thread.json beside it has the title and the assistants.

const janName = "jan"

func detectJan(h *head) bool {
	return h.any(func(v value) bool { return v.get("object").str() == "thread.message" && v.has("thread_id") })
}

var janShape = shape{role: "role", time: "created_at", model: "metadata.model|metadata.modelId", content: "content", call: "tool_call_id", key: "type",
	kinds: map[string]partReader{
		"text":      saying("text.value|text"),
		"reasoning": thinking("text.value|text", ""),
		"tool_call": callAndResult("tool_call_id", "tool_name", "input", "output", nil),
	}}

func readJan(r *reading) error {
	g := r.gather()
	n := 0
	err := r.eachLine(func(at place, v value) error {
		n++
		id := v.get("thread_id").str()
		t := g.of(at, id)
		if len(t.records) == 0 {
			r.besideJSON(path.Join(path.Dir(r.file.path), "thread.json"), func(about value) {
				t.in.Title, t.in.Created, t.in.Updated = about.get("title").str(), about.get("created").time(), about.get("updated").time()
				t.in.System = about.get("assistants").first().get("instructions").str()
				r.about(&t.in, about)
			})
		}
		janShape.next(t.thread, at, v, firstOf(v.get("id").str(), itoa(n)), nil)
		return nil
	})
	return r.atEnd(err, g.emit)
}
