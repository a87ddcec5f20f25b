package boltkv

// XNU has open file description locks; x/sys does not name them.
const (
	setLock     = 90
	setLockWait = 91
	getLock     = 92
)
