// Package operation is the table of what the product does. An operation is one entry: its name, its parameters as a struct, its result, the right that it needs, its lines
// of help, and the function that does it. The command line, HTTP, JSON-RPC, OpenAPI, the help, completion and the tables in docs are made of these entries.
//
// It owns what operations do and what they are called. It knows no transport and no terminal, prints nothing, and opens no store.
package operation

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Right is what a caller must be allowed to do, to call an operation.
type Right string

// The rights. None of them includes another.
const (
	Read   Right = "read"   // read everything
	Write  Right = "write"  // change conversations
	Decide Right = "decide" // decide about tool calls
	Run    Right = "run"    // ask models, run tools
	Admin  Right = "admin"  // rules, tools, the store's settings, and all settings that name hosts or keys
)

// Rights are all rights.
var Rights = []Right{Read, Write, Decide, Run, Admin}

// Shape is the form of a result.
type Shape int

// The shapes.
const (
	Answer  Shape = iota // one value
	Events               // events, then one value
	Content              // bytes
)

// Place is what an operation is about.
type Place int

// The places.
const (
	OnStore   Place = iota
	OnContext       // a conversation
	OnBranch
)

// Operation is an entry of the table.
type Operation struct {
	Name   string // in JSON-RPC and OpenAPI: "branches.fork"
	Verb   string // of HTTP: GET, or POST for a change
	Path   string // of HTTP, below /api/v1
	On     Place
	Right  Right
	Does   string // one line
	Shape  Shape
	Upload bool    // it reads bytes; over HTTP they are the body, and the other parameters are in the query
	Long   bool    // an answer that may take long, and ends with its request
	Goes   bool    // a repeated request goes on where one that failed ended
	Tells  []Event // the events of a stream, without done and error
	In     reflect.Type
	Out    reflect.Type
	Run    func(r *Request, in any) (any, error) // in is a pointer to an In
	fails  []string                              // kinds of errors; Errors has all
	Command
}

// Command is an operation on the command line. Its parameters are the fields with the tag arg or flag.
type Command struct {
	Typed   string // as it is typed: "label add"; "" for an operation that the command line does not have
	More    string // further text for its help
	Example string // lines to type
	Each    bool   // In has one conversation; the command line takes several, and does it for each
	Creates bool   // it makes the store if there is none
	Caches  bool   // it reads, and keeps what it counts on the way if the store is a file that can be written
	Judges  bool   // rules may decide calls meanwhile, if the store can be written
	Follows bool   // its items come as they happen, and are shown at once
	List    string // the operation that the command does without arguments; "" for none
	Tool    string // its name as a tool of chatctx mcp; "" for an operation that models do not have
}

// Event is a kind of event of a stream.
type Event struct {
	Name string
	Type reflect.Type // of its data
	Does string
}

// Tells returns an event with data of a type.
func Tells[T any](name, does string) Event { return Event{name, reflect.TypeFor[T](), does} }

// Define makes an entry. route is the verb of HTTP and the path; without a path it is no method, and
// only the command line has it: GET for what only reads. The fields of In are the parameters, by their tags:
//
//	json    the name; without omitempty the API requires it, and it must not be empty there. "-" for one that only the command line has
//	doc     what it is, with the word for a flag's value in braces
//	arg     it is an argument of the command: the word for it, as in [TEXT]
//	flag    it is a flag of the command: its name
//	words   the values that it may have, with spaces between
//	default the value without it
//
// A field of Out with the tag when is printed in place of the rest, its items a line each, if the flag that the tag names is given, or the argument behind a
// minus is not.
//
// Out is the result. One that is a List is printed a line each.
func Define[In, Out any](name, route string, right Right, does string, do func(*Request, *In) (Out, error)) *Operation {
	o := &Operation{Name: name, Right: right, Does: does, In: reflect.TypeFor[In](), Out: reflect.TypeFor[Out]()}
	o.Verb, o.Path, _ = strings.Cut(route, " ")
	o.On = Locate(new(In), "", "")
	o.Run = func(r *Request, in any) (any, error) {
		out, err := do(r, in.(*In))
		o.Observe(err)
		return out, err
	}
	return o
}

// As makes an operation a command, with an example of how it is typed.
func (o *Operation) As(typed, example string) *Operation {
	o.Typed, o.Example = typed, example
	return o
}

// AsTool makes an operation a tool of chatctx mcp.
func (o *Operation) AsTool(name string) *Operation { o.Tool = name; return o }

// With adds to a command's help.
func (o *Operation) With(more string) *Operation { o.More = more; return o }

// Alone lets a command without arguments do another operation, which lists what this one makes.
func (o *Operation) Alone(list string) *Operation { o.List = list; return o }

// ForEach lets a command take several conversations, by their names or by the filters of ls.
func (o *Operation) ForEach() *Operation { o.Each, o.On = true, OnStore; return o }

// Creating lets a command make the store.
func (o *Operation) Creating() *Operation { o.Creates = true; return o }

// Caching lets a command that reads keep what it counts on the way.
func (o *Operation) Caching() *Operation { o.Caches = true; return o }

// Judging lets rules decide calls while a command waits.
func (o *Operation) Judging() *Operation { o.Judges = true; return o }

// Following marks a command that lists things as they happen.
func (o *Operation) Following() *Operation { o.Follows = true; return o }

// Stream marks an operation that sends events while it works, besides done and error at the end.
func (o *Operation) Stream(tells ...Event) *Operation { o.Shape, o.Tells = Events, tells; return o }

// Bytes marks an operation whose result is bytes.
func (o *Operation) Bytes() *Operation { o.Shape = Content; return o }

// Lasting marks an operation that may take long.
func (o *Operation) Lasting() *Operation { o.Long = true; return o }

// Resuming marks an operation of which a request with the key of one that failed goes on where that ended.
func (o *Operation) Resuming() *Operation { o.Goes = true; return o }

// TakesBytes marks an operation that reads bytes.
func (o *Operation) TakesBytes() *Operation { o.Upload = true; return o }

// Changes reports whether an operation makes a change. Others only read.
func (o *Operation) Changes() bool { return o.Verb != "GET" }

// Group is operations that belong together: one file.
type Group struct {
	Heading string // of the help
	Command string // the command that the group's commands stand below: "label"; "" for none
	Does    string // what that command is
	Of      func() []*Operation
}

// headings are those of the help, in their order. Others come after them.
var headings = []string{"Conversations", "Messages", "Finding", "Talking to a model", "Tools and their calls", "The window", "Branches", "Changing a history",
	"Prompts and settings", "Taking back", "Other tools' files", "Space and erasure", "Other programs"}

var groups []Group

// Register adds a group to the table. A file calls it when the program starts.
func Register(g Group) { groups = append(groups, g) }

// Groups returns the groups in the order of the help.
var Groups = sync.OnceValue(func() []Group {
	place := func(g Group) int {
		return (slices.Index(headings, g.Heading) + len(headings) + 1) % (len(headings) + 1)
	}
	return slices.SortedStableFunc(slices.Values(groups), func(a, b Group) int { return cmp.Compare(place(a), place(b)) })
})

// All returns every operation.
var All = sync.OnceValue(func() (all []*Operation) {
	for _, g := range Groups() {
		all = append(all, g.Of()...)
	}
	return all
})

// Lookup returns the operation with a name, which is one of the table.
func Lookup(name string) *Operation {
	return All()[slices.IndexFunc(All(), func(o *Operation) bool { return o.Name == name })]
}
