// Package toolchain finds the programs that Berth runs but does not ship, and
// gets them when they are missing. Today that is Terraform.
//
// Nothing is trusted for where it came from: an archive, from the vendor's
// site or from a mirror directory, is used only when its checksum is in a
// list that is signed with the vendor's key, which is compiled in.
package toolchain
