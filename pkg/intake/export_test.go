package intake

// Addresses is how many are remembered.
func (f *Failures) Addresses() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.buckets)
}
