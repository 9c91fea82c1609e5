package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/builder/internal/registry"
)

func TestStorageSettings(t *testing.T) {
	t.Parallel()
	good := Storage{
		Kind: storageS3, Bucket: "b", Region: "r", Identity: identityFiles, AccessKeyFile: "a", SecretKeyFile: "s",
		Encryption: "bucket", OrdersKeyFile: "o", UploadSecretFile: "u",
	}
	tests := []struct {
		name   string
		change func(*Storage)
		want   string
	}{
		{"files", func(s *Storage) { *s = Storage{Kind: storageFile} }, ""},
		{"a bucket", func(*Storage) {}, ""},
		{"a bucket for a pod", func(s *Storage) { s.Identity, s.AccessKeyFile, s.SecretKeyFile = identityPod, "", "" }, ""},
		{"another kind", func(s *Storage) { s.Kind = "tape" }, "BERTH_REGISTRY_STORAGE is \"tape\", want one of file, s3\nBERTH_REGISTRY_S3_BUCKET is set, but BERTH_REGISTRY_STORAGE is not s3"},
		{"a bucket that would not be used", func(s *Storage) { s.Kind = storageFile }, "BERTH_REGISTRY_S3_BUCKET is set, but BERTH_REGISTRY_STORAGE is not s3"},
		{
			"nothing else", func(s *Storage) { *s = Storage{Kind: storageS3, Identity: identityFiles, Encryption: "bucket"} },
			"BERTH_REGISTRY_S3_BUCKET is not set, and BERTH_REGISTRY_STORAGE=s3 wants it\n" +
				"BERTH_REGISTRY_S3_REGION is not set, and BERTH_REGISTRY_STORAGE=s3 wants it\n" +
				"BERTH_REGISTRY_S3_ACCESS_KEY_FILE is not set, and BERTH_REGISTRY_STORAGE=s3 wants it\n" +
				"BERTH_REGISTRY_S3_SECRET_KEY_FILE is not set, and BERTH_REGISTRY_STORAGE=s3 wants it\n" +
				"BERTH_ORDERS_KEY_FILE is not set, and BERTH_REGISTRY_STORAGE=s3 wants it\n" +
				"BERTH_REGISTRY_SECRET_FILE is not set, and BERTH_REGISTRY_STORAGE=s3 wants it",
		},
		{"files and a pod", func(s *Storage) { s.Identity = identityPod }, "BERTH_REGISTRY_S3_ACCESS_KEY_FILE and BERTH_REGISTRY_S3_SECRET_KEY_FILE are for BERTH_REGISTRY_S3_IDENTITY=files"},
		{"credentials in the address", func(s *Storage) { s.Endpoint = "https://me:word@host" }, "BERTH_REGISTRY_S3_ENDPOINT has credentials in it, and is stored and shown: take them out"},
		{"KMS without a key", func(s *Storage) { s.Encryption = "kms" }, "BERTH_REGISTRY_S3_KMS_KEY belongs to BERTH_REGISTRY_S3_ENCRYPTION=kms, and only to it"},
		{"a key without KMS", func(s *Storage) { s.KMSKey = "k" }, "BERTH_REGISTRY_S3_KMS_KEY belongs to BERTH_REGISTRY_S3_ENCRYPTION=kms, and only to it"},
		{"another encryption", func(s *Storage) { s.Encryption = "rot13" }, `BERTH_REGISTRY_S3_ENCRYPTION is "rot13", want one of bucket, s3, kms`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := good
			tt.change(&s)
			got := ""
			if err := s.Validate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// Nobody's credentials are taken by accident, and the metadata service of the
// machine is asked only where that is wanted.
func TestIdentityOfThePod(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, identity, want string
		env                  map[string]string
	}{
		{"a role for the service account", identityPod, "", map[string]string{"AWS_ROLE_ARN": "arn:x", "AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}},
		{"an agent on the node", identityPod, "", map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials"}},
		{"a pod without", identityPod, "the pod was given none", nil},
		{"half of it", identityPod, "the pod was given none", map[string]string{"AWS_ROLE_ARN": "arn:x"}},
		{"keys in the environment", identityPod, "AWS_ACCESS_KEY_ID is in the environment", map[string]string{"AWS_ACCESS_KEY_ID": "k", "AWS_ROLE_ARN": "arn:x", "AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}},
		{"the machine", identityMachine, "", nil},
		{"the machine, and keys", identityMachine, "AWS_SECRET_ACCESS_KEY is in the environment", map[string]string{"AWS_SECRET_ACCESS_KEY": "k"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := ambient(tt.identity, func(name string) string { return tt.env[name] })
			if (err == nil) != (tt.want == "") || (err != nil && !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestBucketOfTheSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s := Storage{
		Kind: storageS3, Bucket: "b", Region: "r", Endpoint: "https://e", PathStyle: true, Prefix: "p", Identity: identityFiles,
		AccessKeyFile: file("access", "A\n"), SecretKeyFile: file("secret", " S\n"), Encryption: "kms", KMSKey: "k", StorageClass: "STANDARD_IA",
	}
	got, err := s.bucket(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	want := &registry.S3{
		Bucket: "b", Region: "r", Endpoint: "https://e", PathStyle: true, Prefix: "p", AccessKey: "A", SecretKey: "S",
		Encryption: registry.EncryptionKMS, KMSKey: "k", StorageClass: "STANDARD_IA",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bucket (-want +got):\n%s", diff)
	}
	s.SecretKeyFile = file("empty", "\n")
	if _, err := s.bucket(os.Getenv); err == nil || !strings.Contains(err.Error(), "empty is empty") {
		t.Errorf("an empty file: %v", err)
	}
}
