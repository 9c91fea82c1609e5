variable "region" { type = string }

provider "aws" {
  region = var.region
}

resource "aws_s3_bucket" "data" {
  bucket_prefix = "data-"
}

output "bucket_arn" {
  value = aws_s3_bucket.data.arn
}
