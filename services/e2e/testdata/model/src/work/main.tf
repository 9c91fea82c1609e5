# Appends a line to the effects file when it begins and one when it ends. A second one
# of the same name at the same time leaves a line DOUBLE.
variable "dir" { type = string }
variable "name" { type = string }
variable "value" { type = string }
variable "broken" { type = string }
variable "secret" {
  type      = string
  sensitive = true
}

resource "terraform_data" "work" {
  input            = { dir = var.dir, name = var.name, secret = sha256(var.secret) }
  triggers_replace = [var.value, var.broken]

  provisioner "local-exec" {
    interpreter = ["bash", "-c"]
    command     = <<-EOT
      exec 9>>"${var.dir}/lock.${var.name}"
      flock -n 9 || echo "DOUBLE ${var.name}" >>"${var.dir}/effects"
      echo "begin ${var.name}" >>"${var.dir}/effects"
      sleep 1
      [ "${var.broken}" != yes ] || exit 3
      echo "end ${var.name}" >>"${var.dir}/effects"
    EOT
  }
}

output "value" { value = var.value }
