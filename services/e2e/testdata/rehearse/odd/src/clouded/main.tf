terraform {
  cloud {
    organization = "nobody"
  }
}

variable "a" {
  type = string
}

resource "terraform_data" "b" {
  input = var.a
}
