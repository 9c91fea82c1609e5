// Package permissions computes, from the objects that an app applies to a
// cluster, what the account that applies them must be allowed to do: a pure
// function from rendered objects to rules. It renders nothing and asks no
// cluster; what that leaves unknown is in the list by name.
package permissions
