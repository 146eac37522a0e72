// Command init is the first process of a small virtual machine whose only work
// is to make cgroups as container engines lay them out, let something run in
// them, and copy the kernel's files to its disk as a tar: the captured part of
// the test data. See capture.sh.
package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

const (
	app  = "4f1c8d2e9ab07356c1de48f0937b52a6e8d3c40b7f916a25de80b3c7491f6d52"
	db   = "b7e2906fd35c18a4720e9bc64d1f83a5057ce9d2461fb80a93e75c2d18f6043b"
	user = "19ad7c30e84b52f6c9071ed5b38f264a70ce15d9b2863f4ea5d071c8942be36f"
)

func main() {
	if len(os.Args) > 1 && os.Getpid() != 1 {
		work(os.Args[1:])
		return
	}
	if err := capture(); err != nil {
		fmt.Println("capture failed:", err)
	}
	syscall.Sync()
	_ = syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
}

// work waits for a line on its standard input and then uses what it was told to.
func work(args []string) {
	var b [1]byte
	_, _ = os.Stdin.Read(b[:])
	switch args[0] {
	case "burn":
		for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); {
		}
	case "memory":
		held := make([]byte, 32<<20)
		for i := 0; i < len(held); i += 4096 {
			held[i] = 1
		}
		defer func() { _ = held[0] }()
	case "disk":
		f, err := os.OpenFile("/dev/vdb", os.O_RDWR|os.O_SYNC, 0)
		if err == nil {
			_, _ = f.Write(make([]byte, 1<<20))
			_, _ = f.ReadAt(make([]byte, 2<<20), 4<<20)
		}
	}
	time.Sleep(time.Hour)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func mount(source, point, kind, data string) error {
	must(os.MkdirAll(point, 0o755))
	if err := syscall.Mount(source, point, kind, 0, data); err != nil {
		return fmt.Errorf("mount %s: %w", point, err)
	}
	return nil
}

func write(file, text string) {
	if err := os.WriteFile(file, []byte(text), 0); err != nil {
		fmt.Println("write:", err)
	}
}

func capture() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	must(mount("proc", "/proc", "proc", ""))
	must(mount("sysfs", "/sys", "sysfs", ""))
	must(mount("devtmpfs", "/dev", "devtmpfs", ""))
	for _, m := range []string{"virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk"} {
		b, err := os.ReadFile("/" + m + ".ko")
		must(err)
		empty := []byte{0}
		if _, _, e := syscall.Syscall(syscall.SYS_INIT_MODULE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(unsafe.Pointer(&empty[0]))); e != 0 {
			fmt.Println("module", m, e)
		}
	}
	line, _ := os.ReadFile("/proc/cmdline")
	v2 := !strings.Contains(string(line), "capture=v1")
	root := "/sys/fs/cgroup"
	// One directory of each hierarchy, and the layout of each engine below it.
	var hierarchies []string
	if v2 {
		must(mount("cgroup2", root, "cgroup2", "nsdelegate,memory_recursiveprot"))
		hierarchies = []string{root}
	} else {
		must(mount("tmpfs", root, "tmpfs", "mode=755"))
		for _, h := range []string{"cpu,cpuacct", "memory", "blkio", "cpuset", "name=systemd"} {
			dir := filepath.Join(root, strings.TrimPrefix(h, "name="))
			data := h
			if strings.HasPrefix(h, "name=") {
				data = "none," + h
			}
			must(mount("cgroup", dir, "cgroup", data))
			if h != "cpuset" {
				hierarchies = append(hierarchies, dir)
			}
		}
	}
	groups := []struct{ dir, work string }{
		{"docker/" + app, "burn"},                                                                     // cgroupfs driver
		{"system.slice/docker-" + db + ".scope", "memory"},                                            // systemd driver
		{"system.slice/docker-" + db + ".scope", "disk"},                                              //
		{"user.slice/user-1000.slice/user@1000.service/user.slice/docker-" + user + ".scope", "burn"}, // rootless
	}
	var pids []int
	for _, g := range groups {
		cmd := exec.Command("/init", g.work)
		stdin, err := cmd.StdinPipe()
		must(err)
		must(cmd.Start())
		for _, h := range hierarchies {
			dir := h
			for part := range strings.SplitSeq(g.dir, "/") {
				if v2 {
					controllers := "+cpu +memory +io +pids"
					if strings.HasPrefix(part, "user@") || dir != h && strings.Contains(dir, "user@") {
						controllers = "+memory +pids" // what systemd delegates to users by default
					}
					if !strings.Contains(dir, "user@") {
						controllers = "+cpu +memory +io +pids"
					}
					write(filepath.Join(dir, "cgroup.subtree_control"), controllers)
				}
				dir = filepath.Join(dir, part)
				must(os.MkdirAll(dir, 0o755))
			}
			if g.dir == groups[0].dir {
				if v2 {
					write(dir+"/cpu.max", "50000 100000")
				} else if strings.HasSuffix(h, "cpu,cpuacct") {
					write(dir+"/cpu.cfs_quota_us", "50000")
				}
			}
			write(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(cmd.Process.Pid))
		}
		_, _ = stdin.Write([]byte("\n"))
		pids = append(pids, cmd.Process.Pid)
	}
	time.Sleep(4 * time.Second)

	var out bytes.Buffer
	t := tar.NewWriter(&out)
	add := func(name string, b []byte) {
		must(t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(b))}))
		_, err := t.Write(b)
		must(err)
	}
	copyFile := func(file, name string) {
		if b, err := os.ReadFile(file); err == nil {
			add(name, b)
		}
	}
	for _, f := range []string{"stat", "loadavg", "self/mountinfo"} {
		copyFile("/proc/"+f, "proc/"+f)
	}
	for _, pid := range pids {
		copyFile(fmt.Sprintf("/proc/%d/cgroup", pid), fmt.Sprintf("proc/%d/cgroup", pid))
	}
	dirs := map[string]bool{}
	for _, h := range hierarchies {
		dirs[h] = true
		for _, g := range groups {
			dirs[filepath.Join(h, g.dir)] = true
		}
	}
	for dir := range dirs {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			switch e.Name() {
			case "cgroup.procs", "cgroup.events", "cgroup.controllers", "cpu.stat", "cpu.pressure", "cpuacct.usage", "cpuacct.stat",
				"memory.stat", "memory.current", "memory.peak", "memory.usage_in_bytes", "memory.max_usage_in_bytes", "io.stat",
				"blkio.throttle.io_service_bytes", "blkio.throttle.io_service_bytes_recursive", "release_agent":
				file := filepath.Join(dir, e.Name())
				copyFile(file, strings.TrimPrefix(file, "/sys/fs/"))
			}
		}
	}
	// The sampler itself on these cgroups, from the host's cgroup namespace and
	// from one of its own.
	args := []string{"sample", "--interval", "50ms", "--max", "300ms", "app=" + strconv.Itoa(pids[0]), "db=" + strconv.Itoa(pids[1]), "user=" + strconv.Itoa(pids[3])}
	for _, ns := range []string{"host", "private"} {
		cmd := exec.Command("/guest", args...)
		var so, se bytes.Buffer
		cmd.Stdout, cmd.Stderr = &so, &se
		if ns == "private" {
			// The namespace's root is the cgroup in which the process is then.
			for _, h := range hierarchies {
				must(os.MkdirAll(h+"/docker/sampler", 0o755))
				write(h+"/docker/sampler/cgroup.procs", "1")
			}
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWCGROUP}
		}
		fmt.Println("guest sample", ns, cmd.Run(), se.String())
		add("samples/"+ns+".cg.jsonl", so.Bytes())
	}
	must(t.Close())
	disk, err := os.OpenFile("/dev/vda", os.O_WRONLY|os.O_SYNC, 0)
	must(err)
	_, err = disk.Write(out.Bytes())
	must(err)
	fmt.Println("captured", out.Len(), "bytes")
	return disk.Close()
}
