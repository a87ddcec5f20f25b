package cli

import "github.com/chatctx/chatctx/internal/contract"

// The JSON that the API has too.
type (
	where      = contract.Where
	answerJSON = contract.Answer
)

var (
	placedToJSON = contract.PlacedOf
	callToJSON   = contract.CallOf
)
