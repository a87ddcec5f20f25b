package wire

// Clock and Timer are the times of a Sender's tests.
type (
	Clock = clock
	Timer = timer
)

// SetClock gives a Sender another clock.
func SetClock(o *Options, c Clock) { o.clock = c }

// What tests ask by itself.
var (
	Streaming = streaming
	Sound     = sound
	CallID    = callID
)
