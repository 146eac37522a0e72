//go:build !linux

package main

import "os"

var more []os.Signal
