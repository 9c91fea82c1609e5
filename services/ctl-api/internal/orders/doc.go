// Package orders says what an engine must do: it turns blocks of the app
// folder, as a release pins them, into the part of a job that its kind works
// from. It is pure. Package workflow adds ids, state and fence, and has the
// order signed (services/internal/order).
//
// There is one file for each type of component, and for actions and releases:
//
//	Revision.Fill ─┬─ terraform.go   terraform_module, and the sandbox
//	               ├─ helm.go        helm_chart
//	               ├─ manifest.go    kubernetes_manifest
//	               ├─ image.go       container_image
//	               ├─ pulumi.go      pulumi, and a sandbox of that type
//	               ├─ docker_build.go docker_build
//	               └─ plugin.go      every type that is a plugin's
//	Action, Scripts ─ action.go      what a script is
//	SecretCopies ──── secrets.go     what is copied of the customer's secrets
//	Probe ─────────── probe.go       what a runner looks at in a cluster
//
// A new type of component is a file with a function, and its row in types
// (docs/contributing/component-type.md).
package orders
