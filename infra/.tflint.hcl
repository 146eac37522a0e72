# Every rule of the language.
plugin "terraform" {
  enabled = true
  preset  = "all"
}
