# Nothing to make.
output "ready" {
  value = true
}
