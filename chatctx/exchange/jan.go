package exchange

import "path"

// Jan's messages.jsonl has a line for each message of a thread; thread.json beside it has the title and the assistants. Since 0.8.3 a message may name its parent
// and the child that is shown; of children that nothing chooses, the last one is.

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
	shown := map[string]map[string]string{} // of each thread: a message, to the child that is shown; "" is above the roots
	n := 0
	err := r.eachLine(func(at place, v value) error {
		n++
		thread := v.get("thread_id").str()
		t := g.of(at, thread)
		if len(t.records) == 0 {
			chosen := map[string]string{}
			shown[thread] = chosen
			r.besideJSON(path.Join(path.Dir(r.file.path), "thread.json"), func(about value) {
				t.in.Title, t.in.Created, t.in.Updated = about.get("title").str(), about.get("created").time(), about.get("updated").time()
				t.in.System = about.get("assistants").first().get("instructions").str()
				chosen[""] = about.at("metadata", "activeRootId").str()
				r.about(&t.in, about)
			})
			t.end = func() { t.active = janShown(t.thread, chosen) }
		}
		id := firstOf(v.get("id").str(), itoa(n))
		if child := v.at("metadata", "activeChildId").str(); child != "" && shown[thread] != nil {
			shown[thread][id] = child
		}
		janMessage(t.thread, at, v, id)
		return nil
	})
	return r.atEnd(err, g.emit)
}

// janMessage adds a message below the parent that it names: null makes a root, and a message that names none is below the one before it.
func janMessage(t *thread, at place, v value, id string) {
	about := v.get("metadata")
	if !v.is(objectKind) || v.get("role").str() == "" || !about.has("parentId") {
		janShape.next(t, at, v, id, nil)
		return
	}
	t.take(at, id, about.get("parentId").str(), v, janShape.read(v, id)...)
}

// janShown returns the end of the path that is shown: from each message to the child that is chosen, else to its last.
func janShown(t *thread, chosen map[string]string) string {
	last, isChild, first := map[string]string{}, map[[2]string]bool{}, map[string]string{}
	id := ""
	for i := range t.records {
		rec := &t.records[i]
		if first[rec.id] = id; rec.further { // of the message before it
			continue
		}
		id = rec.id
		first[id] = id
		parent := firstOf(first[rec.parent], rec.parent)
		last[parent], isChild[[2]string{parent, id}] = id, true
	}
	at := ""
	for range t.records { // a parent may be its own descendant
		next := chosen[at]
		if !isChild[[2]string{at, next}] {
			next = last[at]
		}
		if next == "" {
			break
		}
		at = next
	}
	return at
}
