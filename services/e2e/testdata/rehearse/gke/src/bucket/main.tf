terraform {
  required_providers {
    google = { source = "hashicorp/google" }
  }
}
variable "project" { type = string }
resource "google_storage_bucket" "media" {
  name     = "media"
  project  = var.project
  location = "EU"
}
output "bucket_name" { value = google_storage_bucket.media.name }
