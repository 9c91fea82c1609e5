# A service as two files: what it runs and how it is configured.

terraform {
  required_providers {
    world = { source = "berth.test/berth/world" }
  }
}

variable "dir" { type = string }
variable "name" { type = string }
variable "image" { type = string }
variable "replicas" {
  type    = number
  default = 1
}
variable "settings" {
  type    = string
  default = ""
}
variable "password" {
  type      = string
  default   = ""
  sensitive = true
}

resource "world_file" "unit" {
  path = "${var.dir}/${var.name}.unit"
  text = "image: ${var.image}\nreplicas: ${var.replicas}\n"
}

resource "world_file" "settings" {
  path   = "${var.dir}/${var.name}.settings"
  text   = var.settings
  secret = var.password
}

# What each new image does once.
resource "terraform_data" "migration" {
  input            = { name = var.name, image = var.image }
  triggers_replace = var.image
  depends_on       = [world_file.settings]

  provisioner "local-exec" {
    interpreter = ["bash", "-c"]
    command     = <<-EOT
      echo "pulling ${var.image}"
      for i in 1 2 3 4 5 6; do echo "layer $i of 6: verified"; sleep 0.05; done
      if [ "${var.name}" = worker ] && [ -e "${var.dir}/orphans" ]; then
        echo "migration 0042_threads: begin"
        echo "ERROR: $(cat "${var.dir}/orphans") have no owner" >&2
        echo "hint: run the action adopt_orphans, then retry" >&2
        exit 1
      fi
      echo "migration done, ${var.name} is ready"
    EOT
  }
}

output "image" { value = var.image }
output "address" { value = "${var.name}.relay.internal" }
