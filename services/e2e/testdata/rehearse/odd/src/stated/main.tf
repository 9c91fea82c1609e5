terraform {
  required_version = "= 1.3.9"
  backend "s3" {
    bucket = "nowhere"
    key    = "k"
    region = "us-west-2"
  }
}

resource "terraform_data" "a" {
  input = "a"
}

output "a" {
  value = terraform_data.a.output
}
