output "url" {
  value = "x"
}

variable "left" {
