variable "a" {
