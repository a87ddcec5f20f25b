package tokens_test

import (
	"fmt"

	"github.com/chatctx/chatctx/enhancer/tokens"
	"github.com/chatctx/chatctx/pool"
)

func Example() {
	fmt.Println(tokens.Count("gpt-4o", "How many tokens is this?"))
	fmt.Println(tokens.Message("gpt-4o", pool.NewText(pool.User, "How many tokens is this?")))
	fmt.Println(tokens.Budget("gpt-4o") > 100_000)
	// Output:
	// 6
	// 10
	// true
}
