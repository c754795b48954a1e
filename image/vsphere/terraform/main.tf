# The same pair as pair.toml, by Terraform: fill in terraform.tfvars (terraform.tfvars.example), then
#   terraform init && terraform apply

terraform {
  required_version = ">= 1.3"
  required_providers {
    vsphere = {
      source  = "vmware/vsphere"
      version = ">= 2.12"
    }
  }
}

# Address and login are in the environment: VSPHERE_SERVER, VSPHERE_USER, VSPHERE_PASSWORD.
provider "vsphere" {}

locals {
  # The adapters in their order; which of them a machine has depends on the number of networks.
  roles         = slice(["clients", "servers", "management", "vrrp"], 0, length(var.networks))
  configuration = ["one", "two", "three", "four"][length(var.networks) - 1]
}

data "vsphere_datacenter" "here" {
  name = var.datacenter
}

data "vsphere_compute_cluster" "here" {
  name          = var.cluster
  datacenter_id = data.vsphere_datacenter.here.id
}

data "vsphere_datastore" "here" {
  name          = var.datastore
  datacenter_id = data.vsphere_datacenter.here.id
}

data "vsphere_host" "importing" {
  name          = var.host
  datacenter_id = data.vsphere_datacenter.here.id
}

data "vsphere_network" "of" {
  for_each      = var.networks
  name          = each.value
  datacenter_id = data.vsphere_datacenter.here.id
}

data "vsphere_ovf_vm_template" "appliance" {
  name              = "lb-appliance"
  resource_pool_id  = data.vsphere_compute_cluster.here.resource_pool_id
  datastore_id      = data.vsphere_datastore.here.id
  host_system_id    = data.vsphere_host.importing.id
  local_ovf_path    = var.ova
  deployment_option = local.configuration
  disk_provisioning = "thin"
  ovf_network_map   = { for role in local.roles : role => data.vsphere_network.of[role].id }
}

resource "vsphere_virtual_machine" "load_balancer" {
  for_each         = var.machines
  name             = each.key
  datacenter_id    = data.vsphere_datacenter.here.id
  resource_pool_id = data.vsphere_compute_cluster.here.resource_pool_id
  datastore_id     = data.vsphere_datastore.here.id
  host_system_id   = data.vsphere_host.importing.id
  folder           = var.folder
  num_cpus         = data.vsphere_ovf_vm_template.appliance.num_cpus
  memory           = data.vsphere_ovf_vm_template.appliance.memory
  guest_id         = data.vsphere_ovf_vm_template.appliance.guest_id
  firmware         = data.vsphere_ovf_vm_template.appliance.firmware
  scsi_type        = data.vsphere_ovf_vm_template.appliance.scsi_type

  # Adapter n is the nth network: image/README.md.
  dynamic "network_interface" {
    for_each = local.roles
    content {
      network_id   = data.vsphere_network.of[network_interface.value].id
      adapter_type = "vmxnet3"
    }
  }

  # By it properties reach a machine whose VMware tools do not answer.
  cdrom {
    client_device = true
  }

  ovf_deploy {
    local_ovf_path    = var.ova
    deployment_option = local.configuration
    disk_provisioning = "thin"
    ovf_network_map   = data.vsphere_ovf_vm_template.appliance.ovf_network_map
  }

  vapp {
    properties = merge(var.properties, { hostname = each.key }, each.value)
  }

  # An address may come late, and not at all where the management has DHCP and no lease.
  wait_for_guest_net_timeout = 0
  # A change of the properties is one of the machine, which is shut down for it: one at a time, by
  #   terraform apply -target='vsphere_virtual_machine.load_balancer["lb-2"]'
  shutdown_wait_timeout = 5
  lifecycle {
    ignore_changes = [host_system_id] # DRS moves them
  }
}

resource "vsphere_compute_cluster_vm_anti_affinity_rule" "apart" {
  name                = "lb-appliance"
  compute_cluster_id  = data.vsphere_compute_cluster.here.id
  virtual_machine_ids = [for each in vsphere_virtual_machine.load_balancer : each.id]
}
