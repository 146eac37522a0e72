output "lab" {
  description = "The machines of the run and how to reach them."
  value = {
    run_id   = var.run_id
    provider = "hosts"
    region   = ""
    zone     = ""
    expires  = null
    machines = local.machines
  }

  depends_on = [terraform_data.machine]
}
