variable "a" {
 default = ""
}
output "a" {
 value = var.a
}
