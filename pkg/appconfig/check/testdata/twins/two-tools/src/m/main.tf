variable "old" { default = "" }
