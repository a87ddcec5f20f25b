package adaptertest

import "testing"

func (s Subject) states(t *testing.T) {}
