package permissions

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Account is who gets the rights.
type Account struct{ Namespace, Name string }

// Roles writes the list as Roles, a ClusterRole where something is outside of
// namespaces, and their bindings: documents of YAML, ready for kubectl apply.
// Each rule has its reasons as a comment. The namespaces are not in it.
func (l List) Roles(account Account) string {
	byNamespace := map[string][]Rule{}
	var namespaces []string
	for _, r := range l.Rules {
		if byNamespace[r.Namespace] == nil {
			namespaces = append(namespaces, r.Namespace)
		}
		byNamespace[r.Namespace] = append(byNamespace[r.Namespace], r)
	}
	slices.Sort(namespaces)
	var documents []string
	for _, ns := range namespaces {
		prefix, name, at := "", account.Name, ""
		if ns == "" {
			prefix, name = "Cluster", account.Name+"-"+account.Namespace
		} else {
			at = ", namespace: " + quote(ns)
		}
		var b strings.Builder
		fmt.Fprintf(&b, "apiVersion: rbac.authorization.k8s.io/v1\nkind: %sRole\nmetadata: {name: %s%s}\nrules:\n", prefix, quote(name), at)
		for _, r := range byNamespace[ns] {
			r.write(&b)
		}
		documents = append(documents, b.String(), fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: %[1]sRoleBinding
metadata: {name: %[2]s%[3]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %[1]sRole, name: %[2]s}
subjects: [{kind: ServiceAccount, name: %[4]s, namespace: %[5]s}]
`, prefix, quote(name), at, quote(account.Name), quote(account.Namespace)))
	}
	return strings.Join(documents, "---\n")
}

func (r Rule) write(b *strings.Builder) {
	fmt.Fprintf(b, "  # %s\n", comment(strings.Join(r.Reasons, "; ")))
	if len(r.From) > 0 {
		fmt.Fprintf(b, "  # for %s\n", comment(strings.Join(r.From, ", ")))
	}
	if len(r.URLs) > 0 {
		fmt.Fprintf(b, "  - {nonResourceURLs: %s, verbs: %s}\n", flow(r.URLs), flow(r.Verbs))
		return
	}
	names := ""
	if len(r.Names) > 0 {
		names = ", resourceNames: " + flow(r.Names)
	}
	fmt.Fprintf(b, "  - {apiGroups: [%s], resources: [%s]%s, verbs: %s}\n", quote(r.Group), quote(r.Resource), names, flow(r.Verbs))
}

func flow(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quote(w)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// quote writes text as YAML that is nothing but that text.
func quote(text string) string {
	data, _ := json.Marshal(text) // a string always can be
	return string(data)
}

// comment is text that stays in its line, whatever an app is called.
func comment(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u0085' || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
}
