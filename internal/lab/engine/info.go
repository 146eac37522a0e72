package engine

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/moby/moby/client"
)

// Info is what an engine says of itself and its machine. CPUs and memory are
// the engine's: inside Docker Desktop those of its virtual machine.
type Info struct {
	Name          string // of the machine
	Version       string // of the engine
	APIVersion    string // agreed on
	OS            string // operating system with its version
	OSType        string // linux
	Kernel        string
	Arch          string // x86_64, aarch64
	CPUs          int
	Memory        int64  // bytes
	CgroupVersion string // "1" or "2"
	CgroupDriver  string // cgroupfs or systemd
	StorageDriver string
	SwapLimit     bool // whether the kernel limits swap per container
	Rootless      bool
	Desktop       bool // Docker Desktop
	Warnings      []string
	DataRoot      string    // folder of images, containers and volumes on the engine's machine
	Time          time.Time // its wall clock when it answered; zero when it does not say
	// Siblings has a line for each CPU with the list of the CPUs on the same
	// core, as the kernel writes it; empty for an engine that is not on this
	// machine, or a kernel that does not tell.
	Siblings string
}

// Info asks the engine about itself.
func (e *Engine) Info(ctx context.Context) (Info, error) {
	res, err := retry(ctx, e, func() (client.SystemInfoResult, error) { return e.api.Info(ctx, client.InfoOptions{}) })
	if err != nil {
		return Info{}, fmt.Errorf("asking Docker at %s about itself: %w", e.host, err)
	}
	in := res.Info
	info := Info{
		Name:          in.Name,
		Version:       in.ServerVersion,
		APIVersion:    e.api.ClientVersion(),
		OS:            in.OperatingSystem,
		OSType:        in.OSType,
		Kernel:        in.KernelVersion,
		Arch:          in.Architecture,
		CPUs:          in.NCPU,
		Memory:        in.MemTotal,
		CgroupVersion: in.CgroupVersion,
		CgroupDriver:  in.CgroupDriver,
		StorageDriver: in.Driver,
		SwapLimit:     in.SwapLimit,
		Desktop:       in.OperatingSystem == "Docker Desktop",
		Warnings:      in.Warnings,
		DataRoot:      in.DockerRootDir,
	}
	if strings.HasPrefix(e.host, "unix://") && !info.Desktop {
		info.Siblings = Siblings(info.CPUs)
	}
	info.Time, _ = time.Parse(time.RFC3339Nano, in.SystemTime)
	for _, o := range in.SecurityOptions {
		if strings.Contains(o, "rootless") {
			info.Rootless = true
		}
	}
	if info.CgroupVersion == "" {
		info.CgroupVersion = "1" // engines before 20.10 know no other
	}
	return info, nil
}

var cpuModel = regexp.MustCompile(`(?m)^(?:model name|Model Name|Model|Hardware|cpu model)\s*:\s*(.+)$`)
var cpuPart = regexp.MustCompile(`(?m)^CPU (implementer|part)\s*:\s*(\S+)$`)

// CPUModel finds the processor's name in the text of /proc/cpuinfo. ARM
// kernels give numbers instead of a name; those of well-known cores are
// translated, others are shown. Empty when the text says nothing.
func CPUModel(cpuinfo string) string {
	if m := cpuModel.FindStringSubmatch(cpuinfo); m != nil {
		return strings.Join(strings.Fields(m[1]), " ")
	}
	ids := map[string]string{}
	for _, m := range cpuPart.FindAllStringSubmatch(cpuinfo, -1) {
		if _, seen := ids[m[1]]; !seen {
			ids[m[1]] = m[2]
		}
	}
	if ids["implementer"] == "" {
		return ""
	}
	key := ids["implementer"] + "/" + ids["part"]
	if name, ok := armCores[key]; ok {
		return name
	}
	return "ARM implementer " + ids["implementer"] + " part " + ids["part"]
}

// armCores names cores by the implementer and part numbers of their main ID
// register.
var armCores = map[string]string{
	"0x41/0xd0c": "Arm Neoverse N1 (Graviton2 and others)",
	"0x41/0xd40": "Arm Neoverse V1 (Graviton3 and others)",
	"0x41/0xd4f": "Arm Neoverse V2 (Graviton4 and others)",
	"0x41/0xd49": "Arm Neoverse N2",
	"0x61/0x000": "Apple silicon (virtual)",
}
