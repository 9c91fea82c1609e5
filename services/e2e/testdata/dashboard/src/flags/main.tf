terraform {
  required_providers {
    world = { source = "berth.test/berth/world" }
  }
}

variable "directory" { type = string }

resource "world_file" "flags" {
  path = "${var.directory}/flags"
  text = "as deployed"
}
