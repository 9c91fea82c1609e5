// Package command is what all commands of the command line share: the streams, the
// flags of the root, the client, printing in the formats of -o, asking and
// confirming, and the exit codes.
package command
