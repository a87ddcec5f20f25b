package base

import (
	"os"
	"strings"
)

// firstSpace is the namespace of process ids of the machine itself; each container has its own.
const firstSpace = "pid:[4026531836]"

func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	id := strings.TrimSpace(string(b))
	if space, err := os.Readlink("/proc/self/ns/pid"); err == nil && id != "" && space != firstSpace {
		id += "/" + space
	}
	return id
}
