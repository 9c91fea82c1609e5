terraform {
  required_version = ">= 1.5.0"
}
variable "address" { type = string }
variable "port" { type = number }
resource "terraform_data" "settings" { input = "${var.address}:${var.port}" }
output "dsn" { value = "postgres://${terraform_data.settings.output}" }
