# A text file, signed when a key is given.

variable "directory" {
  type = string
}

variable "name" {
  type = string
}

variable "text" {
  type = string
}

variable "signing_key" {
  type      = string
  default   = ""
  sensitive = true
}

locals {
  path = "${var.directory}/${var.name}"

  # A signature tells nothing about the key, so it need not be hidden.
  signature = nonsensitive(var.signing_key == "" ? "" : sha256("${var.signing_key}\n${var.text}"))
  contents  = local.signature == "" ? "${var.text}\n" : "${var.text}\nsigned: ${local.signature}\n"
}

resource "terraform_data" "file" {
  input            = { path = local.path, contents = local.contents }
  triggers_replace = sha256("${local.path}\n${local.contents}")

  provisioner "local-exec" {
    command     = "mkdir -p \"$(dirname \"$FILE\")\" && printf '%s' \"$CONTENTS\" > \"$FILE\""
    environment = { FILE = self.input.path, CONTENTS = self.input.contents }
  }

  provisioner "local-exec" {
    when        = destroy
    command     = "rm -f \"$FILE\""
    environment = { FILE = self.output.path }
  }
}

output "path" {
  value = local.path
}

output "text" {
  value = var.text
}

output "sha256" {
  value = sha256(local.contents)
}
