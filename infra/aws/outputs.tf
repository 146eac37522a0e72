output "lab" {
  description = "The machines of the run and how to reach them."
  value = {
    run_id   = var.run_id
    provider = "aws"
    region   = var.region
    zone     = var.zone
    expires  = var.expires
    machines = [for name in local.names : {
      name          = name
      role          = local.roles[name]
      ssh_host      = aws_instance.host[name].public_ip
      ssh_port      = 22
      ssh_user      = var.ssh_user
      address       = aws_instance.host[name].private_ip
      instance_type = aws_instance.host[name].instance_type
      instance_id   = aws_instance.host[name].id
      arch          = local.arch[var.instance_types[local.roles[name]]]
      image         = aws_instance.host[name].ami
    }]
  }
}
