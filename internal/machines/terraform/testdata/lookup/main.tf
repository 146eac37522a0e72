# Looks something up that may be gone when what was made is to be destroyed.

variable "path" {
  type = string
}

data "terraform_remote_state" "image" {
  backend = "local"

  config = {
    path = var.path
  }
}

resource "terraform_data" "machine" {
  input = data.terraform_remote_state.image.outputs
}
