package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	s3 "github.com/distribution/distribution/v3/registry/storage/driver/s3-aws"
)

// Encryption is who encrypts what is at rest in a bucket, and with which key.
type Encryption string

// The choices of encryption.
const (
	EncryptionOfBucket Encryption = "bucket" // as the bucket's own default says
	EncryptionS3       Encryption = "s3"     // AES256, with keys of the storage
	EncryptionKMS      Encryption = "kms"    // with S3.KMSKey
)

// S3 is a bucket of Amazon S3 or of something that speaks its protocol. Several
// replicas may share it.
type S3 struct {
	Bucket string
	Region string
	// Endpoint is "https://host" of another storage than Amazon's, or of a
	// private way there; "" for that of the region.
	Endpoint string
	// PathStyle puts the bucket into the path in place of the host name.
	PathStyle bool
	// Prefix comes before all keys; "" for none.
	Prefix string
	// AccessKey and SecretKey are the credentials. Without them the SDK finds
	// those of the process's identity: a token file of Kubernetes, the agent of
	// EKS, or the machine.
	AccessKey, SecretKey string
	// Encryption is EncryptionOfBucket when empty.
	Encryption Encryption
	KMSKey     string
	// StorageClass of new objects, such as STANDARD_IA; "" for the bucket's own.
	StorageClass string
}

const (
	// partBytes are held in memory per upload that runs: the least that S3
	// allows. 10,000 of them, which is as many as S3 allows, are 48 GiB.
	partBytes = 5 << 20

	// openTimeout is for one answer of the storage at the start.
	openTimeout = 20 * time.Second
)

func (s S3) parameters() map[string]any {
	return map[string]any{
		"bucket": s.Bucket, "region": s.Region, "regionendpoint": s.Endpoint, "forcepathstyle": s.PathStyle, "rootdirectory": s.Prefix,
		"accesskey": s.AccessKey, "secretkey": s.SecretKey,
		"encrypt": s.Encryption == EncryptionS3 || s.Encryption == EncryptionKMS, "keyid": s.KMSKey,
		"storageclass": cmp.Or(s.StorageClass, "NONE"), // the driver's word for not saying any
		"chunksize":    partBytes,
	}
}

// open asks the bucket for its list once: what is set wrong is said at the
// start, not at the first push.
func (s S3) open(ctx context.Context) (driver.StorageDriver, error) {
	if s.Bucket == "" || s.Region == "" {
		return nil, errors.New("registry: bucket and region are required")
	}
	if (s.Encryption == EncryptionKMS) != (s.KMSKey != "") {
		return nil, errors.New("registry: encryption with KMS wants a key, and nothing else does")
	}
	for _, name := range []string{"AWS_CA_BUNDLE", "AWS_SDK_GO_CLIENT_TLS_CERT", "AWS_SDK_GO_CLIENT_TLS_KEY"} {
		// The SDK would put what they name into http.DefaultClient, which is that of
		// the whole process and in use already.
		if err := os.Unsetenv(name); err != nil {
			return nil, fmt.Errorf("registry: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	files, err := s3.FromParameters(ctx, s.parameters())
	if err != nil {
		return nil, fmt.Errorf("registry: bucket %s: %w", s.Bucket, err)
	}
	if _, err := files.List(ctx, "/"); err != nil {
		return nil, fmt.Errorf("registry: bucket %s cannot be listed: %w", s.Bucket, err)
	}
	return files, nil
}
