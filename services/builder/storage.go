package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/berth-dev/berth/services/builder/internal/registry"
	"github.com/berth-dev/berth/services/internal/setting"
)

// Where the registry keeps its contents.
const (
	storageFile = "file"
	storageS3   = "s3"
)

// Who builder is to the storage.
const (
	identityFiles   = "files"   // the credentials in two files
	identityPod     = "pod"     // what Kubernetes gives the pod's service account
	identityMachine = "machine" // the role of the machine, from its metadata service
)

// Storage are the settings of where the registry keeps its contents, and of
// what replicas of builder that share them have in common.
type Storage struct {
	// Kind is file (RegistryDir) or s3.
	Kind string `env:"BERTH_REGISTRY_STORAGE" default:"file"`
	// Bucket is there already.
	Bucket string `env:"BERTH_REGISTRY_S3_BUCKET"`
	// Region of the bucket; storages that know none want us-east-1.
	Region string `env:"BERTH_REGISTRY_S3_REGION"`
	// Endpoint is https://HOST of a storage that is not Amazon's.
	Endpoint string `env:"BERTH_REGISTRY_S3_ENDPOINT" shown:"Amazon's of the region"`
	// PathStyle puts the bucket into the path, not into the host name.
	PathStyle bool `env:"BERTH_REGISTRY_S3_PATH_STYLE" default:"false"`
	// Prefix comes before all keys.
	Prefix string `env:"BERTH_REGISTRY_S3_PREFIX"`
	// Identity is files, pod or machine.
	Identity string `env:"BERTH_REGISTRY_S3_IDENTITY" default:"files"`
	// AccessKeyFile and SecretKeyFile hold the credentials of identity files.
	AccessKeyFile string `env:"BERTH_REGISTRY_S3_ACCESS_KEY_FILE"`
	SecretKeyFile string `env:"BERTH_REGISTRY_S3_SECRET_KEY_FILE"`
	// Encryption is bucket, s3 or kms.
	Encryption string `env:"BERTH_REGISTRY_S3_ENCRYPTION" default:"bucket"`
	// KMSKey is the key of encryption kms.
	KMSKey string `env:"BERTH_REGISTRY_S3_KMS_KEY"`
	// StorageClass of new objects.
	StorageClass string `env:"BERTH_REGISTRY_S3_STORAGE_CLASS" shown:"the bucket's own"`

	// OrdersKeyFile holds the secret of the keys that sign builds.
	OrdersKeyFile string `env:"BERTH_ORDERS_KEY_FILE" shown:"BERTH_DATA/builder/orders.key, made when missing"`
	// UploadSecretFile holds the secret that signs the state of uploads.
	UploadSecretFile string `env:"BERTH_REGISTRY_SECRET_FILE" shown:"BERTH_DATA/builder/registry.secret, made when missing"`
}

// Validate reports every setting of the storage that does not work, at once.
func (s Storage) Validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	oneOf := func(name, value string, values ...string) {
		if !slices.Contains(values, value) {
			fail("%s is %q, want one of %s", name, value, strings.Join(values, ", "))
		}
	}
	oneOf("BERTH_REGISTRY_STORAGE", s.Kind, storageFile, storageS3)
	if s.Kind != storageS3 {
		if s.Bucket != "" {
			fail("BERTH_REGISTRY_S3_BUCKET is set, but BERTH_REGISTRY_STORAGE is not s3")
		}
		return errors.Join(errs...)
	}
	required := func(name, value string) {
		if value == "" {
			fail("%s is not set, and BERTH_REGISTRY_STORAGE=s3 wants it", name)
		}
	}
	required("BERTH_REGISTRY_S3_BUCKET", s.Bucket)
	required("BERTH_REGISTRY_S3_REGION", s.Region)
	if s.Endpoint != "" {
		errs = append(errs, setting.URL("BERTH_REGISTRY_S3_ENDPOINT", s.Endpoint))
	}
	oneOf("BERTH_REGISTRY_S3_IDENTITY", s.Identity, identityFiles, identityPod, identityMachine)
	if s.Identity == identityFiles {
		required("BERTH_REGISTRY_S3_ACCESS_KEY_FILE", s.AccessKeyFile)
		required("BERTH_REGISTRY_S3_SECRET_KEY_FILE", s.SecretKeyFile)
	} else if s.AccessKeyFile != "" || s.SecretKeyFile != "" {
		fail("BERTH_REGISTRY_S3_ACCESS_KEY_FILE and BERTH_REGISTRY_S3_SECRET_KEY_FILE are for BERTH_REGISTRY_S3_IDENTITY=files")
	}
	oneOf("BERTH_REGISTRY_S3_ENCRYPTION", s.Encryption, string(registry.EncryptionOfBucket), string(registry.EncryptionS3), string(registry.EncryptionKMS))
	if (s.Encryption == string(registry.EncryptionKMS)) != (s.KMSKey != "") {
		fail("BERTH_REGISTRY_S3_KMS_KEY belongs to BERTH_REGISTRY_S3_ENCRYPTION=kms, and only to it")
	}
	// Each replica would make its own.
	required("BERTH_ORDERS_KEY_FILE", s.OrdersKeyFile)
	required("BERTH_REGISTRY_SECRET_FILE", s.UploadSecretFile)
	return errors.Join(errs...)
}

// replicas tells whether there may be several builders: a folder is one's own.
func (s Storage) replicas() bool { return s.Kind == storageS3 }

// bucket is the storage as the registry wants it; nil when it is not a bucket.
func (s Storage) bucket(getenv func(string) string) (*registry.S3, error) {
	if s.Kind != storageS3 {
		return nil, nil //nolint:nilnil // that is the answer
	}
	b := &registry.S3{
		Bucket: s.Bucket, Region: s.Region, Endpoint: s.Endpoint, PathStyle: s.PathStyle, Prefix: s.Prefix,
		Encryption: registry.Encryption(s.Encryption), KMSKey: s.KMSKey, StorageClass: s.StorageClass,
	}
	if s.Identity != identityFiles {
		return b, ambient(s.Identity, getenv)
	}
	var err error
	if b.AccessKey, err = secretIn(s.AccessKeyFile); err != nil {
		return nil, fmt.Errorf("access key of the registry's bucket: %w", err)
	}
	if b.SecretKey, err = secretIn(s.SecretKeyFile); err != nil {
		return nil, fmt.Errorf("secret key of the registry's bucket: %w", err)
	}
	return b, nil
}

// ambient says why the SDK would not find the identity that is wanted, or would
// find another one. It decides by these variables; without those of a pod it
// asks the machine's metadata service.
func ambient(identity string, getenv func(string) string) error {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY"} {
		if getenv(name) != "" {
			return fmt.Errorf("%s is in the environment, and would be used: name files, with BERTH_REGISTRY_S3_IDENTITY=files", name)
		}
	}
	webIdentity := getenv("AWS_ROLE_ARN") != "" && getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != ""
	agent := getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI") != ""
	if identity == identityPod && !webIdentity && !agent {
		return errors.New("BERTH_REGISTRY_S3_IDENTITY is pod, but the pod was given none: neither AWS_ROLE_ARN with AWS_WEB_IDENTITY_TOKEN_FILE nor AWS_CONTAINER_CREDENTIALS_FULL_URI is set")
	}
	return nil
}

// secretIn reads a file that somebody else provides.
func secretIn(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("%s is empty", file)
	}
	return secret, nil
}
