# The machines are there already: nothing is made. A record of each is kept in
# the state, so that what a run uses can be told, and let go of again.

locals {
  machines = [for h in var.hosts : {
    name          = h.name
    role          = h.role
    ssh_host      = h.ssh_host
    ssh_port      = h.ssh_port
    ssh_user      = h.ssh_user
    address       = h.address != "" ? h.address : h.ssh_host
    instance_type = h.instance_type
    instance_id   = ""
    arch          = ""
    image         = ""
  }]
}

resource "terraform_data" "machine" {
  for_each = { for m in local.machines : m.name => m }

  input = each.value
}
