# What is sold, and the key that visitors' cookies are signed with.

locals {
  products = [
    { name = "Anchor", cents = 9900 },
    { name = "Lantern", cents = 3450 },
    { name = "Rope, 20 m", cents = 1250 },
  ]
}

# Random, and the same for as long as the install lives.
resource "terraform_data" "session_key" {
  input = sha256("${uuid()}${uuid()}")

  lifecycle {
    ignore_changes = [input]
  }
}

output "products" {
  value = local.products
}

output "session_key" {
  value     = terraform_data.session_key.output
  sensitive = true
}

# By this it can be told whether somebody has the right key.
output "session_fingerprint" {
  value = substr(sha256(terraform_data.session_key.output), 0, 12)
}
