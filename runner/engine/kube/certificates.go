package kube

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/certificate"
)

// Certificates are those in the Secrets that are among some objects, or that their Ingresses,
// Gateways and Certificates of cert-manager name. Of a Secret that may not be read, or in
// which there is no certificate, nothing is said. nil when the cluster did not answer.
func (c *Cluster) Certificates(ctx context.Context, refs []Ref) []jobspec.Certificate {
	var secrets []Ref
	for _, ref := range refs {
		if !namesCertificates(ref) {
			continue
		}
		var obj *unstructured.Unstructured
		if !isSecret(ref) {
			var err error
			if obj, err = c.Get(ctx, ref); err != nil && !apierrors.IsForbidden(err) {
				return nil
			}
		}
		for _, secret := range certificateSecrets(ref, obj) {
			if !slices.Contains(secrets, secret) {
				secrets = append(secrets, secret)
			}
		}
	}
	found := []jobspec.Certificate{}
	for _, secret := range secrets {
		obj, err := c.Get(ctx, secret)
		if err != nil && !apierrors.IsForbidden(err) {
			return nil
		}
		if cert, ok := certificateIn(secret, obj); ok && len(found) < jobspec.MaxCertificates {
			found = append(found, cert)
		}
	}
	return found
}

func isSecret(ref Ref) bool { return ref.Group == "" && ref.Kind == "Secret" }

// namesCertificates tells whether an object may hold or name a Secret with a certificate.
func namesCertificates(ref Ref) bool {
	switch ref.Group + "/" + ref.Kind {
	case "/Secret", "networking.k8s.io/Ingress", "gateway.networking.k8s.io/Gateway", "cert-manager.io/Certificate":
		return true
	}
	return false
}

// certificateSecrets are the Secrets that an object names for its certificates; a Secret is
// one itself.
func certificateSecrets(ref Ref, obj *unstructured.Unstructured) (secrets []Ref) {
	named := func(namespace string, name any) {
		if text, ok := name.(string); ok && text != "" {
			secrets = append(secrets, Ref{Version: "v1", Kind: "Secret", Namespace: namespace, Name: text})
		}
	}
	if isSecret(ref) {
		return []Ref{ref}
	}
	if obj == nil {
		return nil
	}
	switch ref.Kind {
	case "Ingress":
		for _, tls := range tables(obj.Object, "spec", "tls") {
			named(ref.Namespace, tls["secretName"])
		}
	case "Gateway":
		for _, listener := range tables(obj.Object, "spec", "listeners") {
			for _, to := range tables(listener, "tls", "certificateRefs") {
				namespace := ref.Namespace
				if other, ok := to["namespace"].(string); ok && other != "" {
					namespace = other
				}
				if kind := fmt.Sprint(to["kind"]); to["kind"] == nil || kind == "Secret" {
					named(namespace, to["name"])
				}
			}
		}
	case "Certificate":
		name, _, _ := unstructured.NestedString(obj.Object, "spec", "secretName")
		named(ref.Namespace, name)
	}
	return secrets
}

// tables are the items of a list that are tables.
func tables(in map[string]any, path ...string) (all []map[string]any) {
	list, _, _ := unstructured.NestedSlice(in, path...)
	for _, item := range list {
		if table, ok := item.(map[string]any); ok {
			all = append(all, table)
		}
	}
	return all
}

// certificateIn is the certificate of a Secret of type kubernetes.io/tls. Its key is not
// looked at.
func certificateIn(ref Ref, obj *unstructured.Unstructured) (jobspec.Certificate, bool) {
	if obj == nil {
		return jobspec.Certificate{}, false
	}
	if kind, _, _ := unstructured.NestedString(obj.Object, "type"); kind != string(corev1.SecretTypeTLS) {
		return jobspec.Certificate{}, false
	}
	text, _, _ := unstructured.NestedString(obj.Object, "data", corev1.TLSCertKey)
	chain, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return jobspec.Certificate{}, false
	}
	leaf := certificate.Leaf(chain)
	if leaf == nil {
		return jobspec.Certificate{}, false
	}
	return certificate.Of(ref.Shown(), leaf), true
}
