variable "text" { type = string }
variable "secret" {
  type      = string
  sensitive = true
}

resource "terraform_data" "note" {
  input = var.text
}

output "text" { value = terraform_data.note.output }

output "hash" { value = nonsensitive(sha256(var.secret)) }
