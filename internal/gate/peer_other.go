//go:build !linux

package gate

import "os"

// agentPID is not known here: the shell between outlives the agent.
func agentPID() int { return 0 }

// gone reports whether whoever started this process ended.
func gone(int) bool { return os.Getppid() == 1 }

// Above returns the agent that started this process, as far as it can be told; "" for none. It is a hint and no wall.
func Above(env func(string) string) string { return agentIn(env) }
