terraform {
  required_providers {
    azurerm = { source = "hashicorp/azurerm" }
  }
}
variable "group" { type = string }
provider "azurerm" {
  features {}
}
resource "azurerm_servicebus_namespace" "jobs" {
  name                = "jobs"
  location            = "eastus"
  resource_group_name = var.group
  sku                 = "Basic"
}
output "endpoint" { value = azurerm_servicebus_namespace.jobs.endpoint }
