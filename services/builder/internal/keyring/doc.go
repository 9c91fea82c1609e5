// Package keyring keeps what opens the private sources of builds: chart
// repositories and registries.
//
//	file ──Read──▶ Ring ──Find(address, org)──▶ Key ──▶ user name and password (chart repositories)
//	                                             └────▶ oci.Login (registries)
//
// A key is a password, a token, or one that a cloud makes when it is asked: ECR of
// AWS, Artifact Registry of Google Cloud, ACR of Azure. Those last for hours, and
// are asked for again shortly before they end.
//
// The file is the operator's. Nothing of it is stored, logged or handed to a
// Build Runner: who uses a key is the builder itself. An app folder can
// name any registry, so an entry may be limited to some orgs.
package keyring
