variable "text" { type = string }
resource "terraform_data" "note" { input = var.text }
output "text" { value = terraform_data.note.output }
