variable "who" { type = string }
resource "terraform_data" "note" { input = var.who }
