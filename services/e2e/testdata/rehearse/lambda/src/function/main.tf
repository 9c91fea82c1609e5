terraform {
  required_providers {
    aws = { source = "hashicorp/aws" }
  }
}
variable "image" { type = string }
variable "role" { type = string }
resource "aws_lambda_function" "api" {
  function_name = "api"
  package_type  = "Image"
  image_uri     = var.image
  role          = var.role
}
output "arn" { value = aws_lambda_function.api.arn }
