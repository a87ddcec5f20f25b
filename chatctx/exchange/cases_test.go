package exchange

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// sharedCase is the expected result of a case beside the project: the branches by the ids of their messages, and the report.
type sharedCase struct {
	folder, file string
	paths        []string // of each conversation, as the function paths writes them
	report       Report   // the counts
	warnings     int
	also         func(t *testing.T, all []*record.Incoming)
}

// message and the like find messages in what was read.
func message(t *testing.T, in *record.Incoming, id string) *chatctx.Message {
	t.Helper()
	for i := range in.Nodes {
		if in.Nodes[i].ID == id {
			return in.Nodes[i].Message
		}
	}
	t.Fatalf("no message %q in %s", id, paths(in))
	return nil
}

func check(t *testing.T, ok bool, what string) {
	t.Helper()
	if !ok {
		t.Error(what)
	}
}

// visible returns the texts of the messages on the active path, without hidden ones.
func visible(in *record.Incoming) string {
	var out []string
	for _, n := range pathTo(in, in.Branches[0].Leaf) {
		if m := in.Nodes[n].Message; !m.Hidden {
			out = append(out, strings.TrimSpace(string(m.Role)+" "+m.Text()))
		}
	}
	return strings.Join(out, " | ")
}

var sharedCases = []sharedCase{
	{folder: "23-", paths: []string{"main: h1b a2 h2\nedit 1 of u1: h1 a1\nanswer 2 of u1: h1b a3\n"}, report: Report{Contexts: 1, Messages: 6, Branches: 3}},
	{folder: "24-", paths: []string{"main: h1 a1 h2 a2\n", "main:\n", "main: h9\n"}, report: Report{Contexts: 3, Messages: 5, Branches: 3},
		also: func(t *testing.T, all []*record.Incoming) {
			check(t, all[2].Title == "only" && all[2].Derived, "the derived title")
		}},
	{folder: "27-", paths: []string{"main: x1\nedit 1 of u1: h1 a1\n"}, report: Report{Contexts: 1, Messages: 3, Branches: 2}, warnings: 1},
	{folder: "29-", paths: []string{"main: u1 l1 ra rb l3\n"}, report: Report{Contexts: 1, Messages: 5, Branches: 1, Structural: 1},
		also: func(t *testing.T, all []*record.Incoming) {
			check(t, len(message(t, all[0], "l1").Calls) == 2, "two calls in one message")
		}},
	{folder: "30-", paths: []string{"main: u1 a1 u2 a2\nedit 2 of u2: u1 a1 u2b a2b\n"}, report: Report{Contexts: 1, Messages: 6, Branches: 2}},
	{folder: "32-", paths: []string{"main: cs a1\n"}, report: Report{Contexts: 1, Messages: 2, Branches: 1, Structural: 1}, warnings: 1,
		also: func(t *testing.T, all []*record.Incoming) {
			check(t, message(t, all[0], "cs").Kind == summary && len(all[0].Branches[0].Sessions) == 2, "a session after the summary")
		}},
	{folder: "34-", paths: []string{"main: u1 a1 u2 a2 u3 a3\n"}, report: Report{Contexts: 1, Messages: 6, Branches: 1, Repaired: 2}, warnings: 2},
	{folder: "35-", paths: []string{"main: u1 a1 u2\n"}, report: Report{Contexts: 1, Messages: 3, Branches: 1, Duplicated: 5}},
	{folder: "36-", paths: []string{"main: u0 B C\n"}, report: Report{Contexts: 1, Messages: 3, Branches: 1, Structural: 2}, warnings: 1},
	{folder: "37-", paths: []string{"main: u1 a1\n"}, report: Report{Contexts: 1, Messages: 2, Branches: 1, Structural: 1}},
	{folder: "43-", paths: []string{"main: u1 a1 r1 i1 r9 e1\n"}, report: Report{Contexts: 1, Messages: 6, Branches: 1}, warnings: 1,
		also: func(t *testing.T, all []*record.Incoming) {
			c := message(t, all[0], "a1").Calls
			check(t, c[0].Execution == pool.Done && c[1].Status == pool.Denied && c[1].Reason == "no result", "states of calls")
			check(t, message(t, all[0], "r9").Kind == orphaned && message(t, all[0], "i1").Kind == interrupted, "kinds")
			check(t, message(t, all[0], "e1").Meta.Error != "" && message(t, all[0], "e1").Unsent, "the error of the API")
		}},
	{folder: "45-", report: Report{Contexts: 1, Messages: 6, Branches: 1, Structural: 1},
		also: func(t *testing.T, all []*record.Incoming) {
			check(t, visible(all[0]) == "user Say hi | assistant hi | user Say hi | assistant hi", visible(all[0]))
			check(t, all[0].Nodes[3].Message.Content[0].Signature == "Z2FyYmFnZQ==", "the sealed reasoning")
		}},
	{folder: "46-", report: Report{Contexts: 1, Messages: 4, Branches: 1},
		also: func(t *testing.T, all []*record.Incoming) {
			check(t, all[0].Conversation == "t-child" && all[0].Nodes[0].CopyOf.Conversation == "t-parent", "the fork's link")
		}},
	{folder: "49-", report: Report{Contexts: 1, Messages: 2, Branches: 1, Structural: 1}},
	{folder: "49-", file: "older.jsonl", report: Report{Contexts: 1, Messages: 4, Branches: 1}},
	{folder: "49-", file: "float_ts.jsonl", report: Report{Contexts: 1, Messages: 1, Branches: 1}},
	{folder: "52-", file: "session-2026-01-01T10-00-abcdef01.jsonl", paths: []string{"main: m1 m2 m5 m6\nedit 1 of u2: m1 m2 m3 m4\n"}, report: Report{Contexts: 1, Messages: 6, Branches: 2, Duplicated: 1},
		also: func(t *testing.T, all []*record.Incoming) {
			check(t, all[0].Title == "Counting" && message(t, all[0], "m2").Text() == "partial then full", "title and last state")
		}},
	{folder: "53-", file: "session-2026-01-02T10-00-abcdef02.jsonl", paths: []string{"main: m1 m2b m3\nanswer 1 of u1: m1 m2\n"}, report: Report{Contexts: 1, Messages: 4, Branches: 2, Duplicated: 1}},
	{folder: "54-", file: "MyActivity.json", report: Report{Contexts: 2, Messages: 5, Branches: 2, Structural: 2}, warnings: 1,
		also: func(t *testing.T, all []*record.Incoming) {
			want := "user Weather in Oslo? | assistant Mild. | user And in winter? | assistant Cold & dark.\n\n- -5 °C"
			check(t, all[0].Conversation == "0123456789abcdef" && visible(all[0]) == want, visible(all[0]))
		}},
	{folder: "55-", file: "My prompt", paths: []string{"main: system 1 3 7 8\n"}, report: Report{Contexts: 1, Messages: 4, Branches: 1, Structural: 4},
		also: func(t *testing.T, all []*record.Incoming) {
			check(t, all[0].Title == "My prompt" && message(t, all[0], "8").Meta.Error != "" && len(message(t, all[0], "7").Content) == 2, "title, error, image")
		}},
	{folder: "58-", paths: []string{"main: q1 a1 q2 a3\nanswer 1 of u2: q1 a1 q2 a2\nedit 2 of u2: q1 a1 q2b\n"}, report: Report{Contexts: 1, Messages: 6, Branches: 3}},
	{folder: "59-", file: "bare.json", paths: []string{"main: q\n"}, report: Report{Contexts: 1, Messages: 1, Branches: 1}},
	{folder: "59-", file: "linear.json", paths: []string{"main: 1 2\n"}, report: Report{Contexts: 1, Messages: 2, Branches: 1}},
	{folder: "59-", file: "ms.json", paths: []string{"main: q\n"}, report: Report{Contexts: 1, Messages: 1, Branches: 1}},
	{folder: "59-", file: "wrapped.json", paths: []string{"main: q a a/2 a/3\n"}, report: Report{Contexts: 1, Messages: 2, Branches: 1}},
	{folder: "60-", paths: []string{"main: u1b a3\nedit 2 of u1: u1 a1\nanswer 2 of u1 in edit 2 of u1: u1 a2\nedit 3 of u1: o1\n"}, report: Report{Contexts: 1, Messages: 6, Branches: 4}, warnings: 1},
	{folder: "64-", report: Report{Contexts: 7, Messages: 18, Branches: 7, Skipped: 1}, warnings: 1,
		also: func(t *testing.T, all []*record.Incoming) {
			check(t, all[1].Nodes[7].Message.Source.Role == "narrator", "an unknown role's name")
			check(t, all[0].Conversation != all[3].Conversation, "one id, two conversations")
		}},
	{folder: "65-", paths: []string{"main: 1 2 3 4 5 6\n"}, report: Report{Contexts: 1, Messages: 6, Branches: 1}, warnings: 2,
		also: func(t *testing.T, all []*record.Incoming) {
			check(t, message(t, all[0], "3").Result.RequestID == message(t, all[0], "2").Calls[0].ID, "pairing by place")
		}},
	{folder: "67-", report: Report{Contexts: 5, Messages: 19, Branches: 6}, warnings: 2,
		also: func(t *testing.T, all []*record.Incoming) {
			check(t, !message(t, all[0], "3").Unsent, "a weight of training hides nothing")
			check(t, string(message(t, all[1], "3").Calls[1].Arguments) == `"{bad"`, "broken arguments")
		}},
	{folder: "68-", paths: []string{"main: system 1 2 3 4 4/2 4/3 5 6\n"}, report: Report{Contexts: 1, Messages: 6, Branches: 1}, warnings: 1,
		also: func(t *testing.T, all []*record.Incoming) {
			p := message(t, all[0], "3").Content
			check(t, p[0].Signature == "c2lnbmF0dXJl" && p[1].Redacted == "b3BhcXVl", "sealed reasoning")
		}},
	{folder: "69-", file: "stored.json", report: Report{Contexts: 1, Messages: 7, Branches: 1, Structural: 1}, warnings: 1},
	{folder: "69-", file: "constructor.json", report: Report{Contexts: 1, Messages: 2, Branches: 1, Skipped: 1}, warnings: 1},
	{folder: "69-", file: "flat.jsonl", report: Report{Contexts: 1, Messages: 2, Branches: 1}},
	{folder: "71-", report: Report{Contexts: 1, Messages: 6, Branches: 1}},
	{folder: "73-", file: "input.messages.jsonl", paths: []string{"main: p a1\nanswer 2 of u1: x\n", "main: p3\n"}, report: Report{Contexts: 2, Messages: 4, Branches: 3}, warnings: 1},
	{folder: "75-", paths: []string{"main: line 2 line 4\n"}, report: Report{Contexts: 1, Messages: 2, Branches: 1, Structural: 2}},
	{folder: "76-", paths: []string{"main: a0 b1 b2\nanswer 1 of u1: a0 a1\n"}, report: Report{Contexts: 1, Messages: 4, Branches: 2}, warnings: 2},
	{folder: "77-", paths: []string{"main: u1 a1 u2\n"}, report: Report{Contexts: 1, Messages: 3, Branches: 1},
		also: func(t *testing.T, all []*record.Incoming) {
			check(t, len(message(t, all[0], "a1").Text()) == 90_000, "the whole text")
		}},
	{folder: "82-", file: ".", report: Report{Contexts: 16, Messages: 16, Branches: 16, Files: 16}, warnings: 2},
	{folder: "83-", paths: []string{"main: u1 a2\nanswer 1 of u1: u1 a1\n"}, report: Report{Contexts: 1, Messages: 3, Branches: 2, Structural: 1}, warnings: 1},
	{folder: "86-", report: Report{Contexts: 1, Messages: 5, Branches: 1},
		also: func(t *testing.T, all []*record.Incoming) {
			check(t, visible(all[0]) == "user Rename the file | assistant Done." && all[0].Title == "Rename the file", visible(all[0]))
		}},
	{folder: "87-", paths: []string{"main: u1 a1 u2 a2\n"}, report: Report{Contexts: 1, Messages: 4, Branches: 1}},
	{folder: "88-", paths: []string{"main: u1 a1 u2 a2\n"}, report: Report{Contexts: 1, Messages: 4, Branches: 1, Duplicated: 2},
		also: func(t *testing.T, all []*record.Incoming) {
			check(t, all[0].Nodes[1].CopyOf == record.NodeLink{Conversation: "aaaaaaaa-0000-4000-8000-000000000001", Node: "a1"}, "the fork's link")
		}},
	{folder: "90-", paths: []string{"main: u1 l1 r1 l2\n"}, report: Report{Contexts: 1, Messages: 4, Branches: 1, Structural: 3}},
	{folder: "92-", file: "rollout-2026-02-01T10-00-00-01900000-0000-7000-8000-00000000abcd.jsonl", report: Report{Contexts: 1, Messages: 4, Branches: 1, Skipped: 1}, warnings: 1,
		also: func(t *testing.T, all []*record.Incoming) {
			check(t, all[0].Conversation == "01900000-0000-7000-8000-00000000abcd", all[0].Conversation)
		}},
	{folder: "93-", paths: []string{"main: m2 q2\nedit 1 of u1: q1 a1\nanswer 2 of u1: m1\n"}, report: Report{Contexts: 1, Messages: 5, Branches: 3}, warnings: 1},
}

// TestSharedCases reads the cases beside the project.
func TestSharedCases(t *testing.T) {
	root := testkit.Shared(t, "cases")
	for _, c := range sharedCases {
		t.Run(c.folder+c.file, func(t *testing.T) {
			folders, err := filepath.Glob(filepath.Join(root, c.folder+"*"))
			if err != nil || len(folders) != 1 {
				t.Fatal(folders, err)
			}
			file := c.file
			for _, guess := range []string{"input.jsonl", "input.json"} {
				if _, err := os.Stat(filepath.Join(folders[0], guess)); err == nil && file == "" {
					file = guess
				}
			}
			all, rep := readAll(t, Options{}, filepath.Join(folders[0], file))
			got := Report{Contexts: rep.Contexts, Messages: rep.Messages, Branches: rep.Branches, Skipped: rep.Skipped, Duplicated: rep.Duplicated,
				Repaired: rep.Repaired, Structural: rep.Structural, SkippedContexts: rep.SkippedContexts, Failed: rep.Failed, Files: rep.Files}
			want := c.report
			want.Files = max(want.Files, 1)
			if !sameCounts(got, want) || len(rep.Warnings) != c.warnings {
				t.Errorf("%+v, want %+v, warnings %v", got, want, rep.Warnings)
			}
			for i, p := range c.paths {
				if paths(all[i]) != p {
					t.Errorf("conversation %d:\n%swant\n%s", i, paths(all[i]), p)
				}
			}
			if c.also != nil {
				c.also(t, all)
			}
		})
	}
}

func sameCounts(a, b Report) bool {
	return a.Contexts == b.Contexts && a.Messages == b.Messages && a.Branches == b.Branches && a.Skipped == b.Skipped && a.Duplicated == b.Duplicated &&
		a.Repaired == b.Repaired && a.Structural == b.Structural && a.SkippedContexts == b.SkippedContexts && a.Failed == b.Failed && a.Files == b.Files
}
