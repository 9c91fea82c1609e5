output "url" {
  value = "x"
}

output "settings" {
  value = { a = 1 }
}
