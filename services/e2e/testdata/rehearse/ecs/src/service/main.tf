module "service" {
  source  = "registry.example.invalid/acme/ecs/aws"
  version = "5.11.0"
  image   = var.image
}
variable "image" { type = string }
output "load_balancer_dns" { value = module.service.dns }
