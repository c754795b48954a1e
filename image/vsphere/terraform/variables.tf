variable "ova" {
  description = "Path of lb-appliance-VERSION.ova"
  type        = string
}

variable "datacenter" {
  type = string
}

variable "cluster" {
  description = "Its hosts carry the machines, and DRS keeps these apart"
  type        = string
}

variable "host" {
  description = "A host of the cluster, for the import"
  type        = string
}

variable "datastore" {
  type = string
}

variable "folder" {
  type    = string
  default = null
}

variable "networks" {
  description = "Port groups by role: clients, then servers, management, vrrp, as many as there are"
  type        = map(string)
  validation {
    condition     = toset(keys(var.networks)) == toset(slice(["clients", "servers", "management", "vrrp"], 0, length(var.networks)))
    error_message = "One network is clients, two are clients and servers, three have management too, four vrrp."
  }
}

variable "properties" {
  description = "Properties of all machines: image/README.md"
  type        = map(string)
  sensitive   = true
}

variable "machines" {
  description = "Properties of each machine, by its host name"
  type        = map(map(string))
}
