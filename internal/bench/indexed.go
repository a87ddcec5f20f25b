package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// benchIndexed imports a million messages with their search index, in many conversations and in one, and searches for the first time after it.
//
//	go run . indexed
func benchIndexed(r *run) []row {
	bin := program(r)
	n := r.n(1_000_000)
	var rows []row
	for _, kind := range []struct {
		name  string
		write func(w io.Writer, n int)
	}{{"25,000 conversations", manyTalks}, {"one conversation", oneTalk}} {
		file, store := in(r.dir, "indexed.json"), in(r.dir, "indexed "+kind.name)
		f := value(os.Create(file))
		w := bufio.NewWriterSize(f, 1<<20)
		kind.write(w, n)
		must(w.Flush())
		size := value(f.Stat()).Size() >> 20
		must(f.Close())
		took, rss := call(bin, store, "import", file)
		first, _ := call(bin, store, "search", needle)
		mb := rss >> 20
		rows = append(rows,
			row{fmt.Sprintf("import of %d messages in %s (%d MB) with their index", n, kind.name, size), fmt.Sprintf("%s, %d MB", took.Round(100*time.Millisecond), mb),
				"at most 60 s, 600 MB", took <= time.Minute && mb <= 600},
			row{"the first search after it", first.Round(time.Millisecond).String(), "at most 1 s", first <= time.Second})
		must(os.Remove(file))
		must(os.Remove(store))
	}
	return rows
}

// talkText returns some 200 bytes of prose; one text has the needle.
func talkText(p *prose, i int) string {
	text := p.text()[:200]
	if i == 500 {
		text += " " + needle
	}
	return text
}

// manyTalks writes a ChatGPT export with conversations of 40 messages.
func manyTalks(w io.Writer, n int) {
	p := newProse()
	fmt.Fprint(w, "[")
	for c := 0; c < n/40; c++ {
		nodes := map[string]any{"root": map[string]any{"id": "root", "message": nil, "parent": nil, "children": []string{"n0"}}}
		parent := "root"
		for i := range 40 {
			id := fmt.Sprintf("n%d", i)
			nodes[id] = map[string]any{"id": id, "parent": parent, "children": []string{fmt.Sprintf("n%d", i+1)}[:min(1, 39-i)], "message": map[string]any{
				"id": id, "author": map[string]any{"role": []string{"user", "assistant"}[i%2], "metadata": map[string]any{}},
				"create_time": 1700000000.5 + float64(i), "status": "finished_successfully", "weight": 1, "recipient": "all",
				"content":  map[string]any{"content_type": "text", "parts": []string{talkText(p, c*40+i)}},
				"metadata": map[string]any{"model_slug": "gpt-4o"}}}
			parent = id
		}
		if c > 0 {
			fmt.Fprint(w, ",")
		}
		value(w.Write(value(json.Marshal(map[string]any{"id": fmt.Sprint("c", c), "conversation_id": fmt.Sprint("c", c), "title": fmt.Sprint("Conversation ", c),
			"create_time": 1700000000.5, "update_time": 1700001000.5, "mapping": nodes, "current_node": "n39"}))))
	}
	fmt.Fprint(w, "]")
}

// oneTalk writes one session of Claude Code.
func oneTalk(w io.Writer, n int) {
	p := newProse()
	parent := any(nil)
	for i := range n {
		id, role := fmt.Sprint("n", i), []string{"user", "assistant"}[i%2]
		value(w.Write(append(value(json.Marshal(map[string]any{"type": role, "uuid": id, "parentUuid": parent, "sessionId": "s",
			"timestamp": time.Unix(1_700_000_000+int64(i), 0).UTC(),
			"message":   map[string]any{"role": role, "id": id, "content": []any{map[string]any{"type": "text", "text": talkText(p, i)}}}})), '\n')))
		parent = id
	}
}
