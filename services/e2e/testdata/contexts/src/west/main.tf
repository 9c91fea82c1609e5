variable "endpoint" { type = string }
variable "authority" { type = string }
variable "token" {
  type      = string
  sensitive = true
}

output "cluster" {
  sensitive = true
  value = {
    endpoint                   = var.endpoint
    certificate_authority_data = var.authority
    token                      = var.token
  }
}
