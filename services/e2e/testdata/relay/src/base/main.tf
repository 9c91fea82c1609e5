variable "install_dir" { type = string }

resource "terraform_data" "dir" {
  input = "${var.install_dir}/relay"
  provisioner "local-exec" {
    command = "mkdir -p '${self.input}'"
  }
}

output "dir" { value = terraform_data.dir.output }
