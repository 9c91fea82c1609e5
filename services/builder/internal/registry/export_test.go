package registry

// NewDirLock is the lock of replicas that share a directory.
func NewDirLock(dir string) Locker { return newDirLock(dir) }
