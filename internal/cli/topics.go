package cli

// topics are what help explains beside commands.
var topics = map[string]string{"concepts": helpConcepts, "refs": helpRefs}

const helpConcepts = `conversation
           a talk with a model, with all its branches. One is current: commands
           work in it. "use" or --context chooses another; flags and JSON call
           a conversation a context.

branch     a history of messages with prompts and settings of its own. A fork
           copies nothing, and what follows on one changes no other.

turn       a user's message with all that answers it, calls and results too.
           u3 begins the third turn, a3 is the last message of its answer.

session    the part of a branch between two compactions. Older messages go to
           the model as a summary, and stay on the branch.

operation  the change that one command made. "op log" lists operations, "undo"
           takes one back, "redo" makes it again.

REF        the name of a message: @ is the head of the branch, @-2 two before.
           "chatctx help refs" shows all kinds of names.

window     the text that a model can read at once. "tokens" counts, "status"
           shows how full the window is, "compact" and "prune" make room.
`

const helpRefs = `A message (REF), on any branch of the conversation:
  @  @-2  @3            the head of the branch, two before it, the third of it
  trains  trains@-2     the same on the branch trains: its head, two before it
  u2  a2                the user's message of the second turn, the last message
                        of its answer
  8f3a21bc              its id, or 4 or more of the digits that are shown
  best                  a tag

A range, where several may be named (log, pick, drop, pin):
  A..B                  the messages after A through B, on B's branch
  A..  ..B              to the head of A's branch; from the beginning of B's

An ambiguous name is refused with a list. These are always clear:
  tag:best  branch:trains  id:8f3a21bc

A conversation (CTX): its title, a part of it that no other title has, or its id
  holiday  3f9c21aa

A call: MESSAGE:INDEX, counted from 1, or the provider's id
  @-1:2  toolu_01A

New branches and tags do not begin with a dash, hold no @ and no .., and do not
look like a label (u1) or a part of an id (cafe, 2024).
`
