// Bench measures how long a job takes from the commit that queues it until it
// is in a runner's hands, and until its engine runs the first instruction.
//
// It starts the real executables with `berth up` on a data folder of its own
// (a private Postgres as it ships, that is with fsync), and then, in the place
// of ctl-api, commits jobs and wakes the runner as ctl-api does. On the other
// side wait
//
//   - waiters: runners in this process, each with its own key, session and
//     connection, holding a signed claim open as the agent does;
//   - one real agent with real engines, started by the supervisor.
//
// Together with each sample of a dispatch, one job goes through River alone, so
// that both met the same machine; a runner that asks once a second shows what
// it would be without wake-ups.
//
//	BERTH_LIBEXEC=.bin go run ./services/bench
//
// With -components it measures deploys instead: of helm_chart and
// kubernetes_manifest components on the cluster of KUBECONFIG, by `berth deploy`
// and, in turns with it, by the tools that customers would use for the same.
//
//	BERTH_LIBEXEC=.bin go run ./services/bench -components 1,10,50
package main
