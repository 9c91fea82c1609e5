# A signing key made from a passphrase.

variable "passphrase" {
  type      = string
  sensitive = true
}

variable "install_id" {
  type        = string
  description = "Makes the key of each install another one."
}

resource "terraform_data" "key" {
  input = sha256("${var.install_id}\n${var.passphrase}")
}

output "signing_key" {
  value     = terraform_data.key.output
  sensitive = true
}

output "fingerprint" {
  value = substr(sha256(nonsensitive(terraform_data.key.output)), 0, 12)
}
