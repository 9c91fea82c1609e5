package seal

import "strings"

// bech32Upper encodes data with the given human-readable part in upper case
// (BIP 173), the form in which age reads a secret key. The age module decodes
// this form and has no exported way to make an identity from 32 bytes.
func bech32Upper(hrp string, data []byte) string {
	const charset = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
	groups := fiveBits(data)

	// The checksum runs over the high bits of the prefix, a zero, its low
	// bits, the data, and six zeros in the place of the checksum itself.
	var input []byte
	for i := range len(hrp) {
		input = append(input, hrp[i]>>5)
	}
	input = append(input, 0)
	for i := range len(hrp) {
		input = append(input, hrp[i]&31)
	}
	input = append(input, groups...)
	sum := bech32Polymod(append(input, 0, 0, 0, 0, 0, 0)) ^ 1
	for i := range 6 {
		groups = append(groups, byte(sum>>(5*(5-i)))&31)
	}

	var out strings.Builder
	out.WriteString(hrp + "1")
	for _, g := range groups {
		out.WriteByte(charset[g])
	}
	return strings.ToUpper(out.String())
}

// fiveBits regroups bytes into groups of five bits, the last filled with zeros.
func fiveBits(data []byte) []byte {
	var out []byte
	var acc, bits uint
	for _, b := range data {
		acc, bits = acc<<8|uint(b), bits+8
		for ; bits >= 5; bits -= 5 {
			out = append(out, byte(acc>>(bits-5))&31)
		}
	}
	if bits > 0 {
		out = append(out, byte(acc<<(5-bits))&31)
	}
	return out
}

func bech32Polymod(values []byte) uint32 {
	generator := [5]uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3}
	sum := uint32(1)
	for _, v := range values {
		top := sum >> 25
		sum = sum&0x1ffffff<<5 ^ uint32(v)
		for i := range generator {
			if top>>i&1 == 1 {
				sum ^= generator[i]
			}
		}
	}
	return sum
}
