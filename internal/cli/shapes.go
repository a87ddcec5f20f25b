package cli

import "github.com/chatctx/chatctx/internal/contract"

// The JSON that the API has too.
type (
	where        = contract.Where
	namedContext = contract.Named
	answerJSON   = contract.Answer
	callJSON     = contract.Call
)

var (
	idOrNull     = contract.ID
	stringOrNull = contract.String
	whereOf      = contract.WhereOf
	placedToJSON = contract.PlacedOf
	subToJSON    = contract.TaskOf
	hitToJSON    = contract.HitOf
	callToJSON   = contract.CallOf
)
