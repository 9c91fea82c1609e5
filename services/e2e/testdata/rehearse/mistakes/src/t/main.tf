variable "a" {
 default = ""
}
variable "b" {
 default = ""
}
variable "c" {
 default = ""
}
variable "d" {
 default = ""
}
variable "e" {
 default = ""
}
output "a" {
 value = var.a
}
output "b" {
 value = var.b
}
output "c" {
 value = var.c
}
output "d" {
 value = var.d
}
output "e" {
 value = var.e
}
