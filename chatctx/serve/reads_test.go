package serve

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/kv/kvtest"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/pool"
)

// views are the requests of the page to show a place: %[1]s is the address of the branch main of a conversation, %[2]s that of the conversation, %[3]s the
// cursor of a page of conversations.
var views = []string{
	"/contexts?limit=50", "%[2]s", "%[1]s", "%[1]s/messages?from=20&to=60", "%[1]s/messages?from=-40", "%[1]s/siblings?from=1&to=40", "%[2]s/tree?limit=20", "%[2]s/operations?limit=20",
	"/labels", "/calls?state=pending", "/contexts?limit=50&after=%[3]s", "/contexts?limit=50&labels=pinned", "/search?limit=20&first=true&text=word", "/search?limit=20&first=true&text=num*", "/search?limit=20&first=true&text=tri*",
}

// TestViewsReadWhatIsSeen counts records and bytes: a view costs the same with ten times as many conversations and fifty times as many messages.
func TestViewsReadWhatIsSeen(t *testing.T) {
	measure := func(conversations, messages int) (reads, bytes map[string]int64) {
		db := &kvtest.Reads{DB: memkv.New()}
		store, err := chatctx.OpenDB(db, chatctx.Options{Create: true, Program: "test", By: "ann", Judge: approval.Rules{}})
		if err != nil {
			t.Fatal(err)
		}
		a := over(t, store, Options{})
		for i := range conversations {
			id, _ := a.filled(fmt.Sprint("Trip ", i), 1)
			if i == 0 {
				a.post("/contexts/"+id+"/labels", object{"label": "pinned"})
			}
		}
		id, main := a.filled("Long", messages)
		for i := range 10 {
			a.post(main+"/fork", object{"name": fmt.Sprint("way-", i), "at": fmt.Sprint("@", 3*i+3)})
		}
		base.Of(store).Indexing.Await(t.Context())
		if err := find.Reindex(t.Context(), base.Of(store), nil); err != nil { // one block: what was indexed meanwhile has as many as the machine was slow
			t.Fatal(err)
		}
		after := a.get("/contexts?limit=5")["next"]
		reads, bytes = map[string]int64{}, map[string]int64{}
		for _, view := range views {
			path := view
			if strings.Contains(view, "%") {
				path = fmt.Sprintf(view+"%.0[1]s", main, "/contexts/"+id, after)
			}
			for round := range 3 { // the least of some rounds: the store's own work in between reads too
				db.Take()
				res, raw := a.send("GET", apiPath+path, nil, nil)
				if res.StatusCode != 200 {
					t.Fatalf("%s gives %d: %s", path, res.StatusCode, raw)
				}
				if n := db.Take(); round == 0 || n < reads[view] {
					reads[view] = n
				}
				bytes[view] = int64(len(raw))
			}
		}
		return reads, bytes
	}
	reads, bytes := measure(120, 80)
	readsLarge, bytesLarge := measure(1200, 4000)
	for _, view := range views {
		if readsLarge[view] > reads[view]+reads[view]/10+4 {
			t.Errorf("%s reads %d records, and %d of a large store", view, reads[view], readsLarge[view])
		}
		if bytesLarge[view] > bytes[view]+bytes[view]/5 {
			t.Errorf("%s sends %d bytes, and %d of a large store", view, bytes[view], bytesLarge[view])
		}
	}
}

// TestADeadReplyIsShown: the rest of a dead program's reply is on the branch when the API shows it.
func TestADeadReplyIsShown(t *testing.T) {
	var late atomic.Int64
	store, err := chatctx.OpenMemory(chatctx.Options{Program: "test", Judge: approval.Rules{}, Clock: func() time.Time { return time.Now().Add(time.Duration(late.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	a := over(t, store, Options{})
	id, main := a.filled("Long", 1)
	c, err := store.Context(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	begun, err := c.BeginReply(t.Context(), "main", chatctx.AppendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := begun.Reply.Save(t.Context(), pool.NewText(pool.Assistant, "half")); err != nil {
		t.Fatal(err)
	}
	a.want(a.get(main), "test", "replying", "program")
	late.Store(int64(2 * time.Minute))
	shown := a.get(main + "/messages")
	a.want(shown, "half", "items", 1, "content", 0, "text")
	a.want(shown, true, "items", 1, "unfinished")
}

// filled creates a conversation of so many messages, and returns its id and the address of its branch.
func (a *api) filled(title string, messages int) (id, main string) {
	list := make([]*chatctx.Message, messages)
	for i := range list {
		list[i] = pool.NewText([]pool.Role{pool.User, pool.Assistant}[i%2], fmt.Sprintf("By the sea, word number %04d.", i))
	}
	c, err := a.store.New(a.t.Context(), record.NewContext{Title: title, Messages: list})
	if err != nil {
		a.t.Fatal(err)
	}
	return c.ID.String(), "/contexts/" + c.ID.String() + "/branches/main"
}
