# Appends one line to the effects file when it begins and one when it ends, and
# prints numbered lines in between. It does not end while there is a file hold.
# A second one of the same name at the same time leaves a line DOUBLE.
variable "dir" { type = string }
variable "name" { type = string }
variable "value" { type = string }
variable "lines" { type = number }
variable "secret" {
  type      = string
  sensitive = true
  default   = ""
}

resource "terraform_data" "work" {
  input            = { dir = var.dir, name = var.name, value = var.value }
  triggers_replace = var.value

  provisioner "local-exec" {
    interpreter = ["bash", "-c"]
    command     = <<-EOT
      exec 9>>"${var.dir}/lock.${var.name}"
      flock -n 9 || echo "DOUBLE ${var.name}" >>"${var.dir}/effects"
      echo "begin ${var.name} ${var.value}" >>"${var.dir}/effects"
      for i in $(seq 1 ${var.lines}); do echo "${var.name} ${var.value} line $i of ${var.lines}"; sleep 0.1; done
      while [ -e "${var.dir}/hold" ]; do sleep 0.05; done
      echo "end ${var.name} ${var.value}" >>"${var.dir}/effects"
    EOT
  }
  provisioner "local-exec" {
    when        = destroy
    interpreter = ["bash", "-c"]
    command     = "echo 'gone ${self.input.name} ${self.input.value}' >>'${self.input.dir}/effects'"
  }
}

output "value" { value = terraform_data.work.output.value }

output "secret" {
  value     = "derived-${sha256(var.secret)}-${var.secret}"
  sensitive = true
}

# What the module was given, for whoever may know.
output "secret_sha256" { value = nonsensitive(sha256(var.secret)) }
