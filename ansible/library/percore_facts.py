#!/usr/bin/python
"""What a host is, as a flat map of strings. Changes nothing."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: percore_facts
short_description: Record what a host is
description:
  - Reads kernel, distribution, processor, clock, network, disk and virtualization
    of a host into a flat map of strings.
  - What a host does not say is absent from the map.
options:
  address:
    description: Address by which the other hosts reach this one; it decides which interface is described.
    type: str
    default: ""
  docker_root:
    description: Folder of the Docker Engine's data; it decides which disk is described.
    type: str
    default: /
  programs:
    description: Programs that the host should have.
    type: list
    elements: str
    default: []
author: percore
"""

EXAMPLES = r"""
- name: The host is described
  percore_facts:
    address: 10.0.0.1
    docker_root: /var/lib/docker
"""

RETURN = r"""
facts:
  description: Facts by name.
  type: dict
  returned: always
missing:
  description: Those of the programs that the host does not have.
  type: list
  returned: always
"""

import glob
import json
import os
import re
import urllib.request

from ansible.module_utils.basic import AnsibleModule

IMDS = "http://169.254.169.254/latest/"


def read(path):
    """The trimmed text of a file, or '' where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def os_release(text):
    """The assignments of an os-release file."""
    values = {}
    for line in text.splitlines():
        name, sep, value = line.strip().partition("=")
        if sep and not name.startswith("#"):
            values[name] = value.strip().strip("\"'")
    return values


def cpu_list(text):
    """The numbers in a list such as 0-3,8."""
    numbers = []
    for part in text.split(","):
        first, _sep, last = part.partition("-")
        if first.strip().isdigit():
            numbers += range(int(first), int(last or first) + 1)
    return numbers


def selected(text):
    """The word in brackets, as in 'always [madvise] never'."""
    match = re.search(r"\[([^\]]+)\]", text)
    return match.group(1) if match else ""


def tracking(text):
    """Facts out of what `chronyc tracking` prints."""
    facts = {}
    leap = re.search(r"^Leap status\s*:\s*(.+)$", text, re.M)
    source = re.search(r"^Reference ID\s*:\s*(\S+)(?: \(([^)]*)\))?", text, re.M)
    if not leap or not source:
        return facts
    # 7F7F0101 is the host's own clock, when chrony is told to believe it.
    if leap.group(1).strip() == "Not synchronised" or source.group(1) == "7F7F0101":
        facts["clock_synchronised"] = "no"
        return facts
    facts["clock_synchronised"] = "yes"
    facts["time_source"] = source.group(2) or source.group(1)
    match = re.search(r"^Stratum\s*:\s*(\d+)", text, re.M)
    if match:
        facts["time_stratum"] = match.group(1)
    match = re.search(r"^System time\s*:\s*([0-9.]+) seconds (slow|fast) of NTP time", text, re.M)
    if match:
        offset = float(match.group(1)) * 1000
        facts["clock_offset_ms"] = "%.6f" % (offset if match.group(2) == "fast" else -offset)
    return facts


def mount_of(path, mountinfo):
    """The mount that a path is on: its device number, filesystem and source."""
    best = None
    for line in mountinfo.splitlines():
        left, _sep, right = line.partition(" - ")
        left, right = left.split(), right.split()
        if len(left) < 5 or len(right) < 2:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m.group(1), 8)), left[4])
        inside = point == "/" or path == point or path.startswith(point + "/")
        # A later mount hides an earlier one on the same point.
        if inside and (best is None or len(point) >= len(best["point"])):
            best = {"point": point, "number": left[2], "type": right[0], "source": right[1]}
    return best


class Host:
    """Collects the facts."""

    def __init__(self, module):
        self.module = module
        self.facts = {}

    def put(self, name, value):
        """Records a fact unless it says nothing."""
        value = str(value).strip() if value is not None else ""
        if value:
            self.facts[name] = value

    def path(self, program):
        """Where a program is, or None."""
        return self.module.get_bin_path(program, opt_dirs=["/usr/sbin", "/sbin"])

    def output(self, *command):
        """What a command prints, or '' where it is not there or fails."""
        path = self.path(command[0])
        if not path:
            return ""
        code, out, _err = self.module.run_command(
            [path, *command[1:]], environ_update={"LC_ALL": "C", "LANGUAGE": "C"}
        )
        return out if code == 0 else ""

    def system(self):
        kernel = os.uname()
        self.put("kernel", kernel.release)
        self.put("architecture", kernel.machine)
        release = os_release(read("/etc/os-release") or read("/usr/lib/os-release"))
        self.put("distribution", release.get("PRETTY_NAME"))
        self.put("distribution_id", release.get("ID"))
        self.put("distribution_version", release.get("VERSION_ID"))
        self.put("python", ".".join(str(n) for n in __import__("sys").version_info[:3]))
        booted = os.path.isdir("/run/systemd/system")
        self.put("service_manager", "systemd" if booted else read("/proc/1/comm"))
        if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
            self.put("cgroup", "v2")
        elif os.path.isdir("/sys/fs/cgroup/unified"):
            self.put("cgroup", "hybrid")
        elif glob.glob("/sys/fs/cgroup/*/cgroup.procs"):
            self.put("cgroup", "v1")
        pages = selected(read("/sys/kernel/mm/transparent_hugepage/enabled"))
        self.put("transparent_hugepages", pages)

    def memory(self):
        match = re.search(r"^MemTotal:\s*(\d+) kB", read("/proc/meminfo"), re.M)
        if match:
            self.put("memory_bytes", int(match.group(1)) * 1024)
        swaps = read("/proc/swaps").splitlines()
        if swaps:
            kib = sum(int(line.split()[2]) for line in swaps[1:] if len(line.split()) > 2)
            self.put("swap", "off" if len(swaps) == 1 else "%d bytes" % (kib * 1024))

    def processor(self):
        match = re.search(r"^model name\s*:\s*(.+)$", read("/proc/cpuinfo"), re.M) or re.search(
            r"^Model name:\s*(.+)$", self.output("lscpu"), re.M
        )
        if match:
            self.put("cpu_model", match.group(1))
        online = cpu_list(read("/sys/devices/system/cpu/online"))
        if not online:
            return
        self.put("cpus", len(online))
        sockets, cores = set(), set()
        for cpu in online:
            topology = "/sys/devices/system/cpu/cpu%d/topology/" % cpu
            socket, core = read(topology + "physical_package_id"), read(topology + "core_id")
            cluster = read(topology + "cluster_id")
            if socket and core:
                sockets.add(socket)
                cores.add((socket, cluster, core))
        if cores:
            self.put("cpu_sockets", len(sockets))
            self.put("cpu_cores", len(cores))
            self.put("cpu_threads_per_core", "%g" % (len(online) / len(cores)))
        nodes = glob.glob("/sys/devices/system/node/node[0-9]*")
        if nodes:
            self.put("numa_nodes", len(nodes))
        frequency = "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/"
        governors = {read(path) for path in glob.glob(frequency + "scaling_governor")} - {""}
        self.put("governor", " ".join(sorted(governors)))
        choices = [set(read(path).split()) for path in glob.glob(frequency + "scaling_available_governors")]
        if choices:
            self.put("governors_available", " ".join(sorted(set.intersection(*choices))))

    def clock(self):
        self.put("clock_source", read("/sys/devices/system/clocksource/clocksource0/current_clocksource"))
        self.facts.update(tracking(self.output("chronyc", "-n", "tracking")))

    def network(self, address):
        interface = ""
        # The kernel is asked through netlink: in a network namespace /sys may
        # show the interfaces of another.
        for line in self.output("ip", "-o", "addr", "show").splitlines():
            words = line.split()
            if len(words) > 3 and address and words[3].split("/")[0] == address:
                interface = words[1].split("@")[0]
        for family in ("-4", "-6"):
            match = re.search(r"\bdev (\S+)", self.output("ip", family, "route", "show", "default"))
            if match and not interface:
                interface = match.group(1)
        if not interface:
            return
        self.put("nic", interface)
        match = re.search(r"\bmtu (\d+)", self.output("ip", "-o", "link", "show", "dev", interface))
        if match:
            self.put("nic_mtu", match.group(1))
        driver = self.output("ethtool", "-i", interface)
        for name, fact in (("driver", "nic_driver"), ("version", "nic_driver_version")):
            match = re.search(r"^%s: (.+)$" % name, driver, re.M)
            if match:
                self.put(fact, match.group(1))
        match = re.search(r"^\s*Speed: (\d+)Mb/s$", self.output("ethtool", interface), re.M)
        if match:
            self.put("nic_speed_mbps", match.group(1))

    def disk(self, root):
        path = os.path.realpath(root)
        while not os.path.exists(path) and path != "/":
            path = os.path.dirname(path)
        mount = mount_of(path, read("/proc/self/mountinfo"))
        if not mount:
            return
        self.put("disk_filesystem", mount["type"])
        size = os.statvfs(path)
        self.put("disk_bytes", size.f_frsize * size.f_blocks)
        self.put("disk_free_bytes", size.f_frsize * size.f_bavail)
        if not mount["source"].startswith("/dev/"):
            return
        self.put("disk_device", mount["source"])
        device = "/sys/dev/block/" + mount["number"]
        if not os.path.exists(device):  # btrfs has a number of its own
            device = "/sys/class/block/" + os.path.basename(os.path.realpath(mount["source"]))
        device = os.path.realpath(device)
        if os.path.exists(os.path.join(device, "partition")):
            device = os.path.dirname(device)
        self.put("disk_model", read(os.path.join(device, "device/model")))
        self.put("disk_scheduler", selected(read(os.path.join(device, "queue/scheduler"))))
        self.put("disk_write_cache", read(os.path.join(device, "queue/write_cache")))
        rotational = read(os.path.join(device, "queue/rotational"))
        self.put("disk_rotational", {"0": "no", "1": "yes"}.get(rotational))

    def machine(self):
        kind = self.output("systemd-detect-virt").strip()
        self.put("virtualization", kind)
        vendor = read("/sys/class/dmi/id/sys_vendor")
        self.put("hardware_vendor", vendor)
        self.put("hardware_model", read("/sys/class/dmi/id/product_name"))
        if vendor == "Amazon EC2" or kind == "amazon" or read("/sys/hypervisor/uuid").startswith("ec2"):
            self.put("cloud", "ec2")
            self.ec2()

    def ec2(self):
        """What the instance's own metadata service says, version 2 only."""
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))

        def ask(path, method="GET", headers=None):
            request = urllib.request.Request(IMDS + path, method=method, headers=headers or {})
            with direct.open(request, timeout=2) as answer:
                return answer.read().decode("utf-8", "replace")

        try:
            token = ask("api/token", "PUT", {"X-aws-ec2-metadata-token-ttl-seconds": "60"})
            said = ask("dynamic/instance-identity/document", headers={"X-aws-ec2-metadata-token": token})
            document = json.loads(said)
        except (OSError, ValueError):
            return
        self.put("instance_type", document.get("instanceType"))
        self.put("instance_id", document.get("instanceId"))
        self.put("instance_image", document.get("imageId"))
        self.put("instance_zone", document.get("availabilityZone"))


def main():
    module = AnsibleModule(
        argument_spec={
            "address": {"type": "str", "default": ""},
            "docker_root": {"type": "str", "default": "/"},
            "programs": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    host = Host(module)
    host.system()
    host.memory()
    host.processor()
    host.clock()
    host.network(module.params["address"])
    host.disk(module.params["docker_root"])
    host.machine()
    missing = [name for name in module.params["programs"] if not host.path(name)]
    module.exit_json(changed=False, facts=host.facts, missing=missing)


if __name__ == "__main__":
    main()
