package engine

import "testing"

// TestLongPurposes: whoever waits for a file is told to expect as much only of what may take as long as the disk does.
func TestLongPurposes(t *testing.T) {
	for purpose, long := range map[string]bool{"backup": true, "vacuum": true, "purge": true, "check": true, "gc": true, "redact": true, "repair": true,
		"restore": true, "index": true, "": false, "send": false, "import": false, "indexes": false} {
		if IsLong(purpose) != long {
			t.Errorf("IsLong(%q) = %v", purpose, !long)
		}
	}
}
