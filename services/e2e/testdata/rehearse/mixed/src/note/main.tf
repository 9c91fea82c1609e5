variable "all" { type = string }
resource "terraform_data" "note" { input = var.all }
output "name" { value = terraform_data.note.output }
