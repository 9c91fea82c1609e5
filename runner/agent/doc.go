// Package agent is the customer-side program of Berth: it enrols, asks for
// work, checks every order by itself, starts one engine per job, and reports.
// Install Runners and Build Runners are the same program; who a runner is, it
// learns when it enrols.
//
//	enrol ─▶ recover what an earlier agent left ─▶ open session ─▶ claim, renew,
//	                    │                               ▲          settings, chain
//	                    ▼                               └── again after an outage
//	             jobs, schedule: go on whatever the control plane does
//
// The customer's switch (package power) stands above all of it, what the
// customer pinned (trust.json) above the control plane. What is on disk where,
// says package datadir; how one job is worked on, package job.
package agent
