package engine

import "context"

type laneKey struct{}

// WithLane says that the Updates under ctx mostly meet others of the same lane, for example a conversation. An engine whose writers do not wait for each
// other runs those of one lane one after the other, so that they need not run again. It does not change the effect of an Update.
func WithLane(ctx context.Context, lane string) context.Context {
	return context.WithValue(ctx, laneKey{}, lane)
}

// Lane returns the lane that WithLane set, or "".
func Lane(ctx context.Context) string {
	lane, _ := ctx.Value(laneKey{}).(string)
	return lane
}
