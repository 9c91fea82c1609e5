variable "directory" { type = string }
variable "page" { type = string }

resource "terraform_data" "page" {
  input            = { directory = var.directory, page = var.page }
  triggers_replace = var.page

  provisioner "local-exec" {
    command     = <<-EOT
      for i in $(seq 1 300); do echo "page $PAGE, line $i"; done
      look=0
      while [ -e "$DIR/hold" ]; do look=$((look + 1)); echo "page $PAGE is held, look $look"; sleep 0.2; done
      if [ -e "$DIR/broken" ]; then
        echo "the binder of page $PAGE is broken"
        exit 7
      fi
      printf '%s\n' "$PAGE" >"$DIR/journal.txt"
    EOT
    environment = { DIR = self.input.directory, PAGE = self.input.page }
  }
}
