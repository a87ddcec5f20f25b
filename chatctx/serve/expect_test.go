package serve

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/internal/codec"
	"github.com/chatctx/chatctx/internal/testkit"
)

// unexpecting are the methods that change something but accept no revision, with the reason.
var unexpecting = map[string]string{
	"calls.ensure": "what is there already is found", "gate.mode": "the store's gate has no revision",
	"contexts.new": "makes something new", "contexts.copy": "makes something new, and leaves the original as it is", "contexts.activate": "changes what the terminal works on, and no conversation",
	"artifacts.put": "bytes are named by their hash", "uploads.add": "a file is nobody else's", "import": "files name the conversations that they change",
	"settings.setStore": "the store has no revision", "tokens.add": "a name that is taken is refused", "tokens.remove": "there is one of a name",
	"operations.undo": "the store has no revision", "places.import": "files name the conversations that they change", "calls.renew": "the claim's token says that it still holds",
}

// TestEachChangeExpectsARevision: each method that changes a conversation accepts expect and If-Match and does nothing at another revision; all accept a key.
func TestEachChangeExpectsARevision(t *testing.T) {
	a := start(t, Options{})
	a.provider()
	id, main := a.context("Boats", "One", "Two")
	a.post(main+"/messages", object{"messages": []object{{"role": "assistant", "tool_calls": []object{{"id": "c1", "tool_name": "sail", "arguments": object{}}}}}})
	a.post(main+"/tags", object{"message": "@1", "tag": "t"})
	a.post("/contexts/"+id+"/labels", object{"label": "l"})
	a.post(main+"/fork", object{"name": "other", "at": "@2"})
	rule := a.post("/rules", object{"context": id, "effect": "ask", "tool": "sail"})["rule"].(string)
	a.post("/tools", object{"context": id, "tool": "sail", "command": []string{"true"}})
	task := a.post(main+"/tasks", object{"goal": "Find a boat"})["context"].(string)
	place := strings.NewReplacer("{context}", id, "{branch}", "main", "{tag}", "t", "{label}", "l", "{rule}", rule, "{tool}", "sail", "{call}", "c1")
	bodies := map[string]object{
		"contexts.rename": {"title": "x"}, "labels.add": {"label": "x"}, "branches.fork": {"name": "x"}, "branches.edit": {"message": "@1", "text": "x"}, "branches.rename": {"name": "x"}, "branches.restore": {"branch": "x"},
		"messages.append": {"messages": []object{{"role": "user", "content": "x"}}}, "send": {"text": "x", "model": "plain"}, "retry": {"model": "plain"}, "history.rewind": {"message": "@1"},
		"history.drop": {"messages": []string{"@1"}}, "history.pick": {"from": "other", "messages": []string{"@1"}}, "history.merge": {"from": "other"}, "marks.set": {"messages": []string{"@1"}, "mark": "pinned"},
		"tags.set": {"message": "@1", "tag": "x"}, "take": {"message": "@2"}, "prompts.set": {"system": "x"}, "settings.setBranch": {"settings": object{"model": "m"}},
		"settings.setContext": {"settings": object{"model": "m"}}, "rules.add": {"context": id, "effect": "ask", "tool": "x"}, "rules.remove": {"context": id}, "rules.default": {"context": id, "effect": "deny"}, "tools.put": {"context": id, "tool": "x", "command": []string{"true"}},
		"tools.remove": {"context": id}, "tasks.start": {"goal": "x"}, "calls.resolve": {"text": "x"}, "calls.decide": {"verdict": "approve", "seen": "x"},
	}
	state := func() string {
		return fmt.Sprint(a.get("/contexts/"+id), a.get("/contexts/"+id+"/operations"), a.get("/contexts/"+id+"/tasks"), a.get("/contexts/"+task))
	}
	before := state()
	for _, m := range methods() {
		if m.Verb != http.MethodPost {
			continue
		}
		if !m.has("key") {
			t.Errorf("%s takes no key", m.Name)
		}
		why, none := unexpecting[m.Name]
		if m.has("expect") == none {
			t.Errorf("%s takes a revision: %v; %s", m.Name, m.has("expect"), why)
		}
		if none {
			continue
		}
		path := place.Replace(m.Path)
		if m.Name == "tasks.return" || m.Name == "tasks.abandon" {
			path = strings.ReplaceAll(path, id, task)
		}
		body := bodies[m.Name]
		if body == nil {
			body = object{}
		}
		for _, tag := range []string{`"99"`, `W/"3"`, `"abcdef"`, `"98", "99-ab"`} {
			if res, raw := a.send("POST", apiPath+path, body, map[string]string{"If-Match": tag}); res.StatusCode != 412 || !strings.Contains(string(raw), `"conflict"`) {
				t.Errorf("%s with If-Match %s gives %d: %s", m.Name, tag, res.StatusCode, raw)
			}
		}
		body["expect"] = 99
		if res, raw := a.send("POST", apiPath+path, body, nil); res.StatusCode != 412 || !strings.Contains(string(raw), `"conflict"`) {
			t.Errorf("%s at another revision gives %d: %s", m.Name, res.StatusCode, raw)
		}
	}
	if after := state(); after != before {
		t.Errorf("something was done:\n%s\n%s", before, after)
	}
	for i, form := range []string{"%s", `"77", %s`, `W/"1",%s`, "*"} {
		res, _ := a.send("GET", apiPath+main, nil, nil)
		for _, tag := range []string{res.Header.Get("ETag"), "of the change"} {
			if tag == "of the change" {
				tag = res.Header.Get("ETag")
			}
			list := strings.ReplaceAll(form, "%s", tag)
			var raw []byte
			if res, raw = a.send("POST", apiPath+main+"/prompts", object{"system": list + fmt.Sprint(i)}, map[string]string{"If-Match": list}); res.StatusCode != 200 {
				t.Errorf("If-Match %s gives %d: %s", list, res.StatusCode, raw)
			}
		}
	}
	for header, bad := range map[string]string{"If-Match": "3", "If-None-Match": "x"} {
		verb := map[string]string{"If-Match": "POST", "If-None-Match": "GET"}[header]
		path := map[string]string{"POST": main + "/undo", "GET": main}[verb]
		if res, _ := a.send(verb, apiPath+path, nil, map[string]string{header: bad}); res.StatusCode != 400 {
			t.Errorf("%s %s gives %d", header, bad, res.StatusCode)
		}
	}
}

// TestAnExpectationIsOfTheFirstOperation: the revision only binds the first operation of a request, however many there are.
func TestAnExpectationIsOfTheFirstOperation(t *testing.T) {
	a := start(t, Options{})
	a.provider()
	_, main := a.context("Boats")
	revision := a.get(main)["revision"]
	res, raw := a.send("POST", apiPath+main+"/send", object{"text": "Hello", "model": "plain", "expect": revision}, nil)
	if res.StatusCode != 200 || !strings.Contains(string(raw), "event: done") {
		t.Fatalf("send gives %d: %s", res.StatusCode, raw)
	}
	revision = a.get(main)["revision"]
	res, raw = a.send("POST", apiPath+main+"/retry", object{"models": []string{"plain", "other"}, "expect": revision}, nil)
	if res.StatusCode != 200 || !strings.Contains(string(raw), "event: done") || strings.Contains(string(raw), `"conflict"`) {
		t.Fatalf("retry gives %d: %s", res.StatusCode, raw)
	}
}

// TestTagsTell: whatever changes, by whichever program, a different answer has a different tag, and the same answer gives 304.
func TestTagsTell(t *testing.T) {
	for seed := range testkit.Seeds(t, 3) {
		r := rand.New(rand.NewPCG(seed, 1))
		a := start(t, Options{})
		id, main := a.context("Boats", "One", "Two", "Three")
		at := "/contexts/" + id
		reads := []string{"/contexts", at, at + "/branches", main, main + "/siblings", at + "/tree", main + "/messages", main + "/messages/@1", at + "/marks", at + "/tags", main + "/settings", at + "/settings",
			"/settings", at + "/operations", "/operations", "/calls", "/labels", "/rules?context=" + id, "/tools", main + "/tokens", "/search?text=one", "/cost", at + "/tasks", "/tokens"}
		bodies, tags := map[string]string{}, map[string]string{}
		made := map[string]string{} // by path and tag: the only body
		look := func(what string) {
			for _, path := range reads {
				res, raw := a.send("GET", apiPath+path, nil, map[string]string{"If-None-Match": tags[path]})
				tag := res.Header.Get("ETag")
				switch {
				case res.StatusCode == 304:
					if now, raw := a.send("GET", apiPath+path, nil, nil); now.Header.Get("ETag") != tag || string(raw) != bodies[path] {
						t.Fatalf("after %s %s gives 304 and is another:\n%s\n%s", what, path, bodies[path], raw)
					}
				case res.StatusCode != 200 || tag == "":
					t.Fatalf("%s gives %d with the tag %s: %s", path, res.StatusCode, tag, raw)
				case tags[path] == tag:
					t.Fatalf("%s gives 200 to its own tag", path)
				default:
					if was, known := made[path+tag]; known && was != string(raw) {
						t.Fatalf("%s has one tag for two answers:\n%s\n%s", path, was, raw)
					}
					bodies[path], tags[path], made[path+tag] = string(raw), tag, string(raw)
				}
			}
		}
		look("the beginning")
		for i := range 12 {
			name := fmt.Sprint("n", i)
			change := []struct {
				path string
				body object
			}{
				{main + "/marks", object{"messages": []string{"@1"}, "mark": []string{"pinned", "excluded", ""}[r.IntN(3)]}}, {main + "/tags", object{"message": "@2", "tag": name}},
				{"/settings", object{"settings": object{"model": name}}}, {at + "/settings", object{"settings": object{"model": name}}}, {main + "/settings", object{"settings": object{"temperature": 0.1 * float64(i)}}},
				{main + "/fork", object{"name": name, "activate": r.IntN(2) == 0}}, {main + "/activate", object{}}, {at + "/labels", object{"label": name}}, {main + "/messages", object{"messages": []object{{"role": "user", "content": name}}}},
				{main + "/undo", object{}}, {at + "/rename", object{"title": name}}, {"/rules", object{"context": id, "effect": "ask", "tool": name}}, {main + "/tasks", object{"goal": name}}, {main + "/prompts", object{"system": name}},
			}[r.IntN(14)]
			a.send("POST", apiPath+change.path, change.body, nil) // one that fails changes nothing
			look(change.path)
		}
		if res, _ := a.send("HEAD", apiPath+main, nil, nil); res.Header.Get("ETag") != tags[main] {
			t.Errorf("HEAD gives the tag %s, and GET %s", res.Header.Get("ETag"), tags[main])
		}
		for _, list := range []string{"*", `"x", W/` + tags[main], tags[main] + `, "y"`} {
			if res, _ := a.send("GET", apiPath+main, nil, map[string]string{"If-None-Match": list}); res.StatusCode != 304 {
				t.Errorf("If-None-Match %s gives %d", list, res.StatusCode)
			}
		}
	}
}

// fill sets every field of a value.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte("{ \"a\": [1,\n \"<&>\"] }"))
		return
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(r.Int64N(1e9), 0).UTC()))
		return
	case v.Kind() == reflect.Struct && codec.WritesItself(v.Type()), depth > 6, r.IntN(4) == 0:
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{"", "x<y>&\u2028\"\\\n", "boat"}[r.IntN(3)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64N(9))
	case reflect.Uint64:
		v.SetUint(r.Uint64N(9))
	case reflect.Float64:
		v.SetFloat(r.Float64() * 1e-8)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		for i := range v.Len() {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		if v.Type().Key().Kind() == reflect.String {
			value := reflect.New(v.Type().Elem()).Elem()
			fill(r, value, depth+1)
			v.SetMapIndex(reflect.ValueOf("k<").Convert(v.Type().Key()), value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(r, v.Field(i), depth+1)
			} else if v.Type().Field(i).Anonymous {
				fill(r, reflect.NewAt(v.Field(i).Type(), v.Field(i).Addr().UnsafePointer()).Elem(), depth)
			}
		}
	}
}

// TestAnswersAreOneLine: whatever a result holds, its JSON is one line in which no object has a name twice, and no list is null.
func TestAnswersAreOneLine(t *testing.T) {
	outs := map[string]reflect.Type{}
	for _, m := range methods() {
		outs[m.Name] = m.Out
		for _, e := range m.Tells {
			outs[m.Name+" "+e.Name] = e.Type
		}
	}
	for seed := range testkit.Seeds(t, 5) {
		r := rand.New(rand.NewPCG(seed, 2))
		for name, out := range outs {
			v := reflect.New(out)
			fill(r, v.Elem(), 0)
			got, err := encode(v.Elem().Interface(), 0)
			if err != nil {
				continue // a message that cannot be written
			}
			if err := testkit.UniqueNames(got); err != nil || strings.ContainsAny(string(got), "\n\r") {
				t.Errorf("%s is encoded as\n%s\n%v", name, got, err)
			}
		}
	}
}

// TestKeysOverStdio: each change is made once for its key, and repeats its first answer; another request with the key is a conflict.
func TestKeysOverStdio(t *testing.T) {
	a := start(t, Options{})
	a.provider()
	id, main := a.context("Boats", "One")
	c := a.stdio()
	c.call("initialize", nil)
	for method, params := range map[string]object{
		"contexts.new": {"title": "x"}, "branches.fork": {"context": id, "branch": "main", "name": "f"}, "messages.append": {"context": id, "branch": "main", "messages": []object{{"role": "user", "content": "x"}}},
		"send": {"context": id, "branch": "main", "text": "x", "model": "plain"}, "uploads.add": {"data": "eA==", "name": "x"}, "tokens.add": {"token": "t", "scopes": []string{"read"}}, "labels.add": {"context": id, "label": "l"},
	} {
		params["key"] = "once"
		first, again := c.call(method, params), c.call(method, params)
		if !reflect.DeepEqual(first, again) {
			t.Errorf("%s with a key gives %v, and then %v", method, first, again)
		}
		params[map[string]string{"contexts.new": "system", "branches.fork": "at", "messages.append": "expect", "send": "provider", "uploads.add": "upload", "tokens.add": "token", "labels.add": "label"}[method]] = map[bool]any{true: 1, false: "@1"}[method == "messages.append"]
		if m, _ := c.answer(c.begin(method, params)); m.Error == nil || m.Error.Data.Kind != "conflict" {
			t.Errorf("another %s with the key gives %s %v", method, m.Result, m.Error)
		}
	}
	a.want(a.get(main), 4, "messages")
	a.want(a.get("/contexts"), nil, "items", 2)
}
