// Package deploy writes what a customer applies to run the agent in a cluster:
// one manifest, complete in itself and explained in its comments, so that it
// can be read before it is applied. It asks no cluster.
package deploy
