variable "run_id" {
  description = "Identity of the run."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", var.run_id))
    error_message = "run_id is ${jsonencode(var.run_id)}; write letters, digits, dots, dashes and underscores, at most 100."
  }
}

variable "hosts" {
  description = "The machines: one of role app, one of role db, and one or more of role load."
  type = list(object({
    name          = string
    role          = string
    ssh_host      = string
    ssh_port      = optional(number, 0)
    ssh_user      = optional(string, "")
    address       = optional(string, "")
    instance_type = optional(string, "")
  }))
  nullable = false

  validation {
    condition     = alltrue([for h in var.hosts : can(regex("^[a-z0-9][a-z0-9-]*$", h.name))])
    error_message = "hosts has a machine with the name ${join(", ", [for h in var.hosts : jsonencode(h.name) if !can(regex("^[a-z0-9][a-z0-9-]*$", h.name))])}; write a name of lower-case letters, digits and dashes."
  }
  validation {
    condition     = length(distinct(var.hosts[*].name)) == length(var.hosts)
    error_message = "hosts has a name twice among ${join(", ", var.hosts[*].name)}; give each machine a name of its own."
  }
  validation {
    condition     = alltrue([for h in var.hosts : contains(["app", "db", "load"], h.role)])
    error_message = "hosts has a machine with the role ${join(", ", [for h in var.hosts : jsonencode(h.role) if !contains(["app", "db", "load"], h.role)])}; write app, db or load."
  }
  validation {
    condition     = alltrue([for r in ["app", "db"] : length([for h in var.hosts : h if h.role == r]) == 1])
    error_message = "hosts has ${length([for h in var.hosts : h if h.role == "app"])} machines of role app and ${length([for h in var.hosts : h if h.role == "db"])} of role db; give exactly one of each."
  }
  validation {
    condition     = length([for h in var.hosts : h if h.role == "load"]) > 0
    error_message = "hosts has no machine of role load; give at least one."
  }
  validation {
    condition     = alltrue([for h in var.hosts : can(regex("^[^\\s@-][^\\s@]*$", h.ssh_host))])
    error_message = "hosts has a machine with the ssh_host ${join(", ", [for h in var.hosts : jsonencode(h.ssh_host) if !can(regex("^[^\\s@-][^\\s@]*$", h.ssh_host))])}; write a host name or an address."
  }
  validation {
    condition     = alltrue([for h in var.hosts : can(regex("^[^\\s@]*$", h.ssh_user)) && !startswith(h.ssh_user, "-")])
    error_message = "hosts has a machine with the ssh_user ${join(", ", [for h in var.hosts : jsonencode(h.ssh_user) if !can(regex("^[^\\s@]*$", h.ssh_user)) || startswith(h.ssh_user, "-")])}; write a user's name, or nothing for ssh's own choice."
  }
  validation {
    condition     = alltrue([for h in var.hosts : h.ssh_port >= 0 && h.ssh_port <= 65535 && floor(h.ssh_port) == h.ssh_port])
    error_message = "hosts has a machine with the ssh_port ${join(", ", [for h in var.hosts : h.ssh_port if h.ssh_port < 0 || h.ssh_port > 65535 || floor(h.ssh_port) != h.ssh_port])}; write a port from 1 to 65535, or 0 for ssh's own choice."
  }
  validation {
    condition     = length(distinct([for h in var.hosts : "${lower(h.ssh_host)} ${h.ssh_port == 0 ? 22 : h.ssh_port}"])) == length(var.hosts)
    error_message = "hosts reaches one machine twice by ssh among ${join(", ", [for h in var.hosts : h.ssh_port == 0 ? h.ssh_host : "${h.ssh_host} port ${h.ssh_port}"])}; give each role a machine of its own."
  }
  validation {
    condition = alltrue([for a in [for h in var.hosts : h.address != "" ? h.address : h.ssh_host] :
      can(cidrhost("${a}/32", 0)) || can(cidrhost("${a}/128", 0)) ||
      can(regex("^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$", a)) && !can(regex("(^|\\.)[0-9]+$", a))
    ])
    error_message = "hosts has a machine with an address that is neither an IP address nor the name of a host, among ${join(", ", [for h in var.hosts : jsonencode(h.address != "" ? h.address : h.ssh_host)])}; write the one by which the other machines reach it."
  }
  validation {
    condition     = alltrue([for h in var.hosts : !can(regex("^(127\\.|0\\.0\\.0\\.0$|::1?$|localhost$)", lower(h.address != "" ? h.address : h.ssh_host)))])
    error_message = "hosts has a machine with an address that is every machine's own, among ${join(", ", [for h in var.hosts : h.address != "" ? h.address : h.ssh_host])}; write the one by which the other machines reach it."
  }
  validation {
    condition     = length(distinct([for h in var.hosts : h.address != "" ? h.address : h.ssh_host])) == length(var.hosts)
    error_message = "hosts has an address twice among ${join(", ", [for h in var.hosts : h.address != "" ? h.address : h.ssh_host])}; give the address by which the other machines reach each one."
  }
}
