package up

// Alive tells whether a process runs. One that has ended and waits for its
// parent to notice does not.
func Alive(pid int) bool {
	_, err := identify(pid)
	return err == nil
}

// KubeconfigOf is the file to use when none is named.
func KubeconfigOf(before, environment string) string { return kubeconfigOf(before, environment) }
