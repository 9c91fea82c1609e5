variable "url" { type = string }
resource "terraform_data" "note" { input = var.url }
