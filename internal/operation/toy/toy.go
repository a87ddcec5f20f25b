// Package toy has an operation that tests put into the table. It is this one file, and the tests find it in the help, its JSON, completion, HTTP, JSON-RPC, OpenAPI and
// the docs: no other file names it.
//
// It owns only the toy, and works in a process whose environment has Variable.
package toy

import (
	"os"
	"strings"

	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
)

// Variable is the variable of the environment with which a process has the toy.
const Variable = "CHATCTX_TOY"

func init() {
	if os.Getenv(Variable) != "" {
		operation.Register(operation.Group{Heading: "Toys", Command: "toy", Does: "tops and their spinning", Of: toys})
	}
}

func toys() []*operation.Operation {
	return []*operation.Operation{
		operation.Define("toys.spin", "POST /contexts/{context}/toys", operation.Write, "spin a top in a conversation", spin).
			As("toy spin", "chatctx toy spin red --times 2").With("It stays there as a label."),
	}
}

type spinIn struct {
	operation.ContextChange
	Colour string `json:"colour" arg:"COLOUR" words:"red green" doc:"the colour of the top"`
	Times  int    `json:"times,omitempty" flag:"times" default:"3" doc:"how often it spins: {N} times"`
}

type spun struct {
	contract.Where
	Label string `json:"label"`
}

func spin(r *operation.Request, in *spinIn) (spun, error) {
	b := r.Store.Begin(in.Context, "")
	label := strings.Repeat(in.Colour, in.Times)
	b.Label(label)
	done, err := b.Commit(r.Ctx)
	if err != nil {
		return spun{}, err
	}
	r.Done = done
	return spun{contract.WhereOf(done), label}, nil
}
