// Package buildkit gives builds of images what they need of a Build Runner: a
// BuildKit daemon, its client, build secrets, and credentials of base images.
//
// The daemon is one that the operator names, or one of the runner's own: rootless,
// with a data folder and a socket that no other runner has, so that no two orgs
// share a cache. It is started for the first build and ends with the runner.
//
//	agent ─▶ berth-runner buildkitd (the keeper: Keep) ─▶ buildkitd ─▶ runc ─▶ RUN steps
//	          root: first process of namespaces             in a user namespace,
//	          of its own                                    whose users are nobody here
//	          else: rootlesskit makes the user namespace
//
// The keeper outlives an agent that is killed, and the next agent finds it. When
// none comes it ends by itself. Whatever ends the keeper ends every RUN step.
//
//	DATA/buildkit/
//	  client/buildctl     what engines call; they see it and the socket, nothing else
//	  state/run/s         the socket
//	  state/root/         the cache
//	  keep.json           what the keeper is to start
//	  keeper.json         which process that is
//	  daemon.log          what the daemon said
//
// What is built belongs to package runner/engine/build.
package buildkit
