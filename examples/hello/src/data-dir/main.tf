# A directory for the files of the install.

variable "install_dir" {
  type        = string
  description = "The install's own scratch directory."
}

resource "terraform_data" "data_dir" {
  input            = "${var.install_dir}/hello"
  triggers_replace = var.install_dir

  provisioner "local-exec" {
    command     = "mkdir -p \"$DIR\""
    environment = { DIR = self.input }
  }

  provisioner "local-exec" {
    when        = destroy
    command     = "rm -rf \"$DIR\""
    environment = { DIR = self.output }
  }
}

output "data_dir" {
  value = terraform_data.data_dir.output
}
