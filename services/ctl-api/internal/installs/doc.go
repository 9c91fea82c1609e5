// Package installs makes installs and keeps what people set of them: inputs,
// settings, and the rows of their resources. How an install changes is the
// workflow package's; how its runner gets in is the stacks package's.
package installs
