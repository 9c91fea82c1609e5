package gate

import (
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/httpserver"
)

// Proof is what a route asks of a request.
type Proof string

// The proofs.
const (
	// Secret: a single-use secret in the body is the whole credential.
	Secret Proof = "secret"
	// Signature: the handler finds the key and calls VerifySigned.
	Signature Proof = "signature"
	// LiveSession: signed by the runner, with the token of its live session.
	LiveSession Proof = "session"
)

const (
	kibibyte = 1 << 10
	mebibyte = 1 << 20

	// largestState is a Terraform state of 32 MiB in base64.
	largestState = 48 * mebibyte
)

// Route is what an operation of the contract asks for.
type Route struct {
	Proof Proof
	// MaxBodyBytes bounds the body, which is read whole: its digest is signed.
	// Without a session anybody can have it read, so it is small.
	MaxBodyBytes int64
}

// Routes lists every operation, under the name that the generated contract has
// for it. One that is not here is not served. Within a
// session there are no further rights: a runner reaches what belongs to
// itself, and nothing else exists for it.
var Routes = map[string]Route{
	"PhoneHome":           {Secret, httpserver.MaxUnproven},
	"Enrol":               {Signature, 64 * kibibyte},
	"OpenSession":         {Signature, httpserver.MaxUnproven},
	"ClaimJobs":           {LiveSession, 64 * kibibyte},
	"RenewLeases":         {LiveSession, 256 * kibibyte},
	"PutPlan":             {LiveSession, 16 * mebibyte},
	"PutResult":           {LiveSession, 16 * mebibyte},
	"GetSettings":         {LiveSession, kibibyte},
	"PutRun":              {LiveSession, 4 * mebibyte},
	"PutRemediation":      {LiveSession, mebibyte},
	"PutSamples":          {LiveSession, mebibyte},
	"PutSecrets":          {LiveSession, mebibyte},
	"PutRoles":            {LiveSession, mebibyte},
	"PutConsents":         {LiveSession, 8 * mebibyte}, // a thousand answers with their reasons
	"GetState":            {LiveSession, kibibyte},
	"PutState":            {LiveSession, largestState},
	"GetStateLock":        {LiveSession, kibibyte},
	"LockState":           {LiveSession, 256 * kibibyte},
	"UnlockState":         {LiveSession, 64 * kibibyte},
	"CreateRegistryToken": {LiveSession, 64 * kibibyte},
	"AppendChain":         {LiveSession, 16 * mebibyte},
	"GetChainHead":        {LiveSession, kibibyte},
	"GetChain":            {LiveSession, kibibyte},
	"EnrolmentPosition":   {Signature, 64 * kibibyte},
	"ListSealed":          {LiveSession, kibibyte},
	"GetSealed":           {LiveSession, kibibyte},
	"PutSealed":           {LiveSession, largestState},
}

// Permissions are the same table as package auth knows it.
func Permissions() auth.Routes {
	permissions := make(auth.Routes, len(Routes))
	for operation, route := range Routes {
		permissions[operation] = auth.Public // what its body shows is the credential
		if route.Proof == LiveSession {
			permissions[operation] = auth.JobsWork
		}
	}
	return permissions
}

// BodyLimits are the limits by operation.
func BodyLimits() map[string]int64 {
	limits := make(map[string]int64, len(Routes))
	for operation, route := range Routes {
		limits[operation] = route.MaxBodyBytes
	}
	return limits
}

// KnownCallers are the refusals of callers that are, or were, one of our
// runners.
func KnownCallers() []string {
	return []string{"session_void", "session_overtaken", "runner_revoked", "signature_stale"}
}
