package chatctx

import "github.com/chatctx/chatctx/chatctx/record"

// NewContext describes a conversation to make; package record defines it. Programs of before, which named it here, go on.
type NewContext = record.NewContext

// Tool is a tool that models are offered; package record defines it. Programs of before, which named it here, go on.
type Tool = record.Tool
