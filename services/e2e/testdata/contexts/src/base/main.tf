variable "install_name" { type = string }

resource "terraform_data" "place" {
  input = "contexts-${var.install_name}"
}

output "namespace" { value = terraform_data.place.output }
