// Package enginepod runs engines as Kubernetes Jobs next to the agent's pod
// instead of as its child processes.
//
// A Job's pod has the agent's image and node, the engine's user and service
// account, no token, limits of its own, and of the data volume only the
// directories that its engine may touch:
//
//	jobs/<attempt>/engine/        the job directory of the contract; in/ read-only
//	jobs/<attempt>/pod/           the agent's, which the engine cannot rename in
//	  start.json                  what to start, with its environment
//	  begun                       see Marker
//	  stdout.log, stderr.log      what the engine says
//	  state.sock                  the way to the state proxy
//	install/                      durable scratch of the install
//
// The first process in the pod is Launch. It starts the engine once in the life
// of the attempt, whatever Kubernetes does with the pod: the file begun is
// locked while the engine may live, and written before it starts. The agent
// writes it too, once the pod is gone; from then on no pod of this attempt can
// start an engine any more. So an attempt is never concluded while its engine
// may work, and an engine that never began is known not to have.
//
// Package job decides when; this package knows nothing of orders and results.
package enginepod
