package record

import (
	"os"
	"strings"
)

// firstSpace is the space of process ids that is there from the start; each container has one of its own.
const firstSpace = "pid:[4026531836]"

func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	id := strings.TrimSpace(string(b))
	if space, err := os.Readlink("/proc/self/ns/pid"); err == nil && id != "" && space != firstSpace {
		id += "/" + space
	}
	return id
}
