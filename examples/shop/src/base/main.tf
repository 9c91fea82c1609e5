# Where in the cluster the shop goes.

variable "install_name" {
  type = string
}

resource "terraform_data" "place" {
  input = "shop-${var.install_name}"
}

output "namespace" {
  value = terraform_data.place.output
}
