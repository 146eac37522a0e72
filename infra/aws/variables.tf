variable "run_id" {
  description = "Identity of the run: part of every name, and a tag of everything made."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", var.run_id))
    error_message = "run_id is ${jsonencode(var.run_id)}; write letters, digits, dots, dashes and underscores, at most 100."
  }
}

variable "expires" {
  description = "When the machines shut themselves down and are gone: RFC 3339, UTC."
  type        = string
  nullable    = false

  validation {
    condition     = can(formatdate("YYYY", var.expires)) && endswith(var.expires, "Z")
    error_message = "expires is ${jsonencode(var.expires)}; write a time in UTC, such as 2026-01-31T18:00:00Z."
  }
}

variable "region" {
  description = "AWS region."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]{2,}(-[a-z]+)+-[0-9]+$", var.region))
    error_message = "region is ${jsonencode(var.region)}; write a region's name, such as eu-central-1."
  }
}

variable "zone" {
  description = "Availability zone for all machines: one that offers all their types."
  type        = string
  nullable    = false

  validation {
    condition     = startswith(var.zone, var.region) && var.zone != var.region
    error_message = "zone is ${jsonencode(var.zone)}; write a zone of ${var.region}, such as ${var.region}a."
  }
}

variable "instance_types" {
  description = "Instance type of each role. Types of the burstable families are refused."
  type = object({
    app  = optional(string, "c8g.xlarge")
    db   = optional(string, "c8g.xlarge")
    load = optional(string, "c8gn.xlarge")
  })
  nullable = false
  default  = {}

  validation {
    condition     = alltrue([for r, t in var.instance_types : can(regex("^[a-z0-9-]+\\.[a-z0-9-]+$", t))])
    error_message = "instance_types has ${join(", ", [for r, t in var.instance_types : "${r} = ${jsonencode(t)}" if !can(regex("^[a-z0-9-]+\\.[a-z0-9-]+$", t))])}; write a type's name, such as c8g.xlarge."
  }
}

variable "load_count" {
  description = "How many load hosts share the target."
  type        = number
  nullable    = false
  default     = 1

  validation {
    condition     = var.load_count >= 1 && var.load_count <= 16 && floor(var.load_count) == var.load_count
    error_message = "load_count is ${var.load_count}; write a whole number from 1 to 16."
  }
}

variable "disks" {
  description = "The gp3 root volume of each role: size in GiB, IOPS, and throughput in MiB/s."
  type = object({
    app = optional(object({
      size_gib       = optional(number, 30)
      iops           = optional(number, 3000)
      throughput_mib = optional(number, 125)
    }), {})
    db = optional(object({
      size_gib       = optional(number, 30)
      iops           = optional(number, 3000)
      throughput_mib = optional(number, 125)
    }), {})
    load = optional(object({
      size_gib       = optional(number, 30)
      iops           = optional(number, 3000)
      throughput_mib = optional(number, 125)
    }), {})
  })
  nullable = false
  default  = {}

  validation {
    condition     = alltrue([for r, d in var.disks : d.size_gib >= 10 && d.size_gib <= 16384 && floor(d.size_gib) == d.size_gib])
    error_message = "disks has ${join(", ", [for r, d in var.disks : "${r}.size_gib = ${d.size_gib}" if d.size_gib < 10 || d.size_gib > 16384 || floor(d.size_gib) != d.size_gib])}; write 10 to 16384."
  }
  validation {
    condition     = alltrue([for r, d in var.disks : d.iops >= 3000 && d.iops <= min(16000, 500 * d.size_gib) && floor(d.iops) == d.iops])
    error_message = "disks has ${join(", ", [for r, d in var.disks : "${r}.iops = ${d.iops} for ${d.size_gib} GiB" if d.iops < 3000 || d.iops > min(16000, 500 * d.size_gib) || floor(d.iops) != d.iops])}; write 3000 to 16000, and at most 500 for each GiB."
  }
  validation {
    condition     = alltrue([for r, d in var.disks : d.throughput_mib >= 125 && d.throughput_mib <= min(1000, d.iops / 4) && floor(d.throughput_mib) == d.throughput_mib])
    error_message = "disks has ${join(", ", [for r, d in var.disks : "${r}.throughput_mib = ${d.throughput_mib} for ${d.iops} IOPS" if d.throughput_mib < 125 || d.throughput_mib > min(1000, d.iops / 4) || floor(d.throughput_mib) != d.throughput_mib])}; write 125 to 1000, and at most 1 for every 4 IOPS."
  }
}

variable "ami_ids" {
  description = "Machine image by architecture (amd64, arm64), in place of the current Debian 13."
  type        = map(string)
  nullable    = false
  default     = {}

  validation {
    condition     = alltrue([for a, id in var.ami_ids : contains(["amd64", "arm64"], a) && can(regex("^ami-[0-9a-f]+$", id))])
    error_message = "ami_ids has ${join(", ", [for a, id in var.ami_ids : "${a} = ${jsonencode(id)}" if !contains(["amd64", "arm64"], a) || !can(regex("^ami-[0-9a-f]+$", id))])}; write amd64 or arm64 and the id of an image, ami-...."
  }
}

variable "ssh_user" {
  description = "The user of the image that ssh logs in as: admin on Debian, ubuntu on Ubuntu, ec2-user on Amazon Linux."
  type        = string
  nullable    = false
  default     = "admin"

  validation {
    condition     = can(regex("^[a-z_][a-z0-9_-]*$", var.ssh_user))
    error_message = "ssh_user is ${jsonencode(var.ssh_user)}; write the name of a user."
  }
}

variable "ssh_public_key" {
  description = "Public half of the run's key, as in an authorized_keys file: ed25519."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^ssh-ed25519 [A-Za-z0-9+/]+=*( [^\\n]*)?\\n?$", var.ssh_public_key))
    error_message = "ssh_public_key is not an ed25519 public key; write one line that begins with ssh-ed25519."
  }
}

variable "ssh_cidrs" {
  description = "IPv4 networks from which ssh may reach the machines: the caller's own address."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.ssh_cidrs) > 0
    error_message = "ssh_cidrs is empty, and nobody could reach the machines; write your own address, such as 203.0.113.7/32."
  }
  validation {
    condition     = alltrue([for c in var.ssh_cidrs : can(cidrnetmask(c))])
    error_message = "ssh_cidrs has ${join(", ", [for c in var.ssh_cidrs : jsonencode(c) if !can(cidrnetmask(c))])}; write IPv4 networks, such as 203.0.113.7/32."
  }
  validation {
    condition     = alltrue([for c in var.ssh_cidrs : try(tonumber(split("/", c)[1]) >= 16, true)])
    error_message = "ssh_cidrs has ${join(", ", [for c in var.ssh_cidrs : c if !try(tonumber(split("/", c)[1]) >= 16, true)])}, which opens ssh to too many; write your own address, such as 203.0.113.7/32."
  }
}

variable "placement_group" {
  description = "Whether the machines are placed close to each other, in a cluster placement group."
  type        = bool
  nullable    = false
  default     = true
}
