x = [
  "a",
  { b = "}" },
]
y = <<EOT
[ {
EOT
z = "${join(",", [
  "a"])}" // fine
