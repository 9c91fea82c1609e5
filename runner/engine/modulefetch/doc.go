// Package modulefetch packs the modules that a Terraform module calls from elsewhere into
// the artifact of its build, so that a plan needs no network and no credentials
// for them.
//
//	call ──Parse──▶ git ─────────────────────────▶ commit ─┐
//	            ├─▶ registry ──▶ version ──▶ git | archive  ├─▶ .berth/modules/NAME ──▶ source = "./.berth/modules/NAME/SUB"
//	            └─▶ archive ─────────────────────▶ digest ─┘         └─▶ its own calls
//
// The sources are the vendor's words, and those of servers that they name: only https is
// followed, no address where a cloud machine finds its secrets, and none of this machine
// unless the operator's file names it. Credentials (package modulekeys) are added to single
// requests: to an address that the file has, never to one that another server redirected
// to. So they are in no address, argument, environment or file of a repository.
//
// Terraform itself is not asked: it would start git with what a registry says, and knows
// none of these rules.
package modulefetch
