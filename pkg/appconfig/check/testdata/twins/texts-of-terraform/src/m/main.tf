variable "x" {
  default = null
}

resource "terraform_data" "a" {
  input = [1, 2
}
