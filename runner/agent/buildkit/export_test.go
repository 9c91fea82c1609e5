package buildkit

// FirstUID is where the users of a daemon begin.
var FirstUID = firstUID
