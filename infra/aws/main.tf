# Machines for one run, in a network of their own.

provider "aws" {
  region = var.region

  default_tags {
    tags = local.tags
  }
}

locals {
  # Everything of a run, and everything of ours, is found by these.
  tags = {
    "percore"         = "1"
    "percore:run"     = var.run_id
    "percore:expires" = var.expires
  }

  prefix = "percore-${var.run_id}"

  loads = [for i in range(var.load_count) : i == 0 ? "load" : "load${i + 1}"]
  roles = merge({ app = "app", db = "db" }, { for name in local.loads : name => "load" })
  names = concat(["app", "db"], local.loads)

  # As Debian names an architecture.
  arches = { x86_64 = "amd64", arm64 = "arm64" }
  arch = { for type, it in data.aws_ec2_instance_type.used : type =>
    one([for a in it.supported_architectures : local.arches[a] if contains(keys(local.arches), a)])
  }
  looked_up = setsubtract(values(local.arch), keys(var.ami_ids))
  images    = merge({ for a in local.looked_up : a => data.aws_ssm_parameter.debian[a].insecure_value }, var.ami_ids)
}

data "aws_ec2_instance_type" "used" {
  for_each = toset(values(var.instance_types))

  instance_type = each.value

  lifecycle {
    postcondition {
      condition     = !self.burstable_performance_supported
      error_message = "${each.value} is a burstable type, whose cores slow down when its credit is used up; choose a type of another family, such as c8g.xlarge."
    }
    postcondition {
      condition     = length(setintersection(self.supported_architectures, ["x86_64", "arm64"])) == 1
      error_message = "${each.value} has the architectures ${join(", ", self.supported_architectures)}; choose a type of x86_64 or arm64."
    }
    postcondition {
      condition     = self.default_threads_per_core == 1 || contains(self.valid_threads_per_core, 1)
      error_message = "${each.value} cannot be given one thread per core, so that a core would not mean a core; choose another type, such as c7i.2xlarge."
    }
    postcondition {
      condition     = !var.placement_group || contains(self.supported_placement_strategies, "cluster")
      error_message = "${each.value} cannot be in a cluster placement group; choose another type, or set placement_group to false."
    }
  }
}

data "aws_ssm_parameter" "debian" {
  for_each = local.looked_up

  name = "/aws/service/debian/release/13/latest/${each.value}"
}

# ------------------------------------------------------------------ the network

resource "aws_vpc" "this" {
  # checkov:skip=CKV2_AWS_11:The network lives for hours and carries nothing but the load that is being measured, which a log of its flows would add to.

  cidr_block           = "10.77.0.0/16"
  enable_dns_support   = true
  enable_dns_hostnames = true

  tags = { Name = local.prefix }
}

# What belongs to no other group may neither reach nor be reached.
resource "aws_default_security_group" "this" {
  vpc_id = aws_vpc.this.id

  tags = { Name = "${local.prefix}-unused" }
}

resource "aws_internet_gateway" "this" {
  vpc_id = aws_vpc.this.id

  tags = { Name = local.prefix }
}

resource "aws_subnet" "this" {
  vpc_id                  = aws_vpc.this.id
  cidr_block              = "10.77.0.0/24"
  availability_zone       = var.zone
  map_public_ip_on_launch = false

  tags = { Name = local.prefix }
}

resource "aws_route_table" "this" {
  vpc_id = aws_vpc.this.id

  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.this.id
  }

  tags = { Name = local.prefix }
}

resource "aws_route_table_association" "this" {
  subnet_id      = aws_subnet.this.id
  route_table_id = aws_route_table.this.id
}

resource "aws_security_group" "this" {
  # checkov:skip=CKV_AWS_382:The machines install packages, and get images, from hosts whose addresses nobody can list.

  name        = local.prefix
  description = "ssh from the caller, anything among the machines of the run"
  vpc_id      = aws_vpc.this.id

  ingress {
    description = "ssh from the caller"
    protocol    = "tcp"
    from_port   = 22
    to_port     = 22
    cidr_blocks = var.ssh_cidrs
  }
  ingress {
    description = "anything among the machines"
    protocol    = "-1"
    from_port   = 0
    to_port     = 0
    self        = true
  }
  egress {
    description = "packages and images, from wherever they are"
    protocol    = "-1"
    from_port   = 0
    to_port     = 0
    cidr_blocks = ["0.0.0.0/0"]
  }

  tags = { Name = local.prefix }
}

resource "aws_placement_group" "this" {
  count = var.placement_group ? 1 : 0

  name     = local.prefix
  strategy = "cluster"
}

# ----------------------------------------------------------------- the machines

resource "aws_key_pair" "this" {
  key_name   = local.prefix
  public_key = trimspace(var.ssh_public_key)
}

resource "aws_instance" "host" {
  # checkov:skip=CKV_AWS_88:The driver reaches the machines by ssh from outside, and only its own address may.
  # checkov:skip=CKV_AWS_126:percore reads its own counters, every second; those of the hypervisor, every minute, are not used.
  # checkov:skip=CKV2_AWS_41:The machines call no AWS service, and a role would only give them what they do not need.

  for_each = local.roles

  ami                         = local.images[local.arch[var.instance_types[each.value]]]
  instance_type               = var.instance_types[each.value]
  subnet_id                   = aws_subnet.this.id
  vpc_security_group_ids      = [aws_security_group.this.id]
  associate_public_ip_address = true
  key_name                    = aws_key_pair.this.key_name
  placement_group             = one(aws_placement_group.this[*].name)
  ebs_optimized               = true

  # Powering off is the end of a machine, so that a timer on it is enough.
  instance_initiated_shutdown_behavior = "terminate"

  user_data_replace_on_change = false
  user_data = templatefile("${path.module}/user-data.yaml.tftpl", {
    calendar = "${formatdate("YYYY-MM-DD hh:mm:ss", var.expires)} UTC"
  })

  # Where a core runs two threads it is given one, so that a core means a core.
  dynamic "cpu_options" {
    for_each = [for it in [data.aws_ec2_instance_type.used[var.instance_types[each.value]]] : it if it.default_threads_per_core > 1]

    content {
      core_count       = cpu_options.value.default_cores
      threads_per_core = 1
    }
  }

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  root_block_device {
    volume_type           = "gp3"
    encrypted             = true
    delete_on_termination = true
    volume_size           = var.disks[each.value].size_gib
    iops                  = var.disks[each.value].iops
    throughput            = var.disks[each.value].throughput_mib
  }

  # Volumes get these at their creation, whatever the provider's version makes
  # of its default tags.
  volume_tags = merge(local.tags, { Name = "${local.prefix}-${each.key}" })

  tags = {
    Name           = "${local.prefix}-${each.key}"
    "percore:role" = each.value
  }

  lifecycle {
    # A newer image, or a later expiry, is no reason to replace or to stop a
    # machine that is being measured.
    ignore_changes = [ami, user_data]
  }

  # A machine without a way out cannot be prepared.
  depends_on = [aws_route_table_association.this]
}

# The network interface that a machine comes with takes no tags at its creation.
# A minimal policy allows taking tags from what has the tag percore, so that one
# is given first and taken last.
resource "aws_ec2_tag" "mark" {
  for_each = toset(local.names)

  resource_id = aws_instance.host[each.value].primary_network_interface_id
  key         = "percore"
  value       = local.tags["percore"]
}

resource "aws_ec2_tag" "interface" {
  for_each = { for pair in setproduct(local.names, setsubtract(keys(local.tags), ["percore"])) : "${pair[0]} ${pair[1]}" => {
    name = pair[0]
    key  = pair[1]
  } }

  resource_id = aws_ec2_tag.mark[each.value.name].resource_id
  key         = each.value.key
  value       = local.tags[each.value.key]
}
