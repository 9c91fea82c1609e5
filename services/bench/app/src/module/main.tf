variable "value" { type = string }

resource "terraform_data" "line" { input = var.value }

output "value" { value = terraform_data.line.output }
