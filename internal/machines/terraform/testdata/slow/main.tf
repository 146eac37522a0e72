# Takes as long as it is told to: for tests of what happens meanwhile.

variable "seconds" {
  type = number
}

resource "terraform_data" "first" {
  input = "made before the slow one"
}

resource "terraform_data" "slow" {
  input = terraform_data.first.output

  provisioner "local-exec" {
    command = "echo slow began && sleep ${var.seconds}"
  }
}

output "lab" {
  value = terraform_data.slow.output
}
