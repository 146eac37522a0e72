"""Tests of what reads text in percore_facts, run by the Ansible that is being tested."""

import unittest

import percore_facts

TRACKING = """\
Reference ID    : A9FEA97B (169.254.169.123)
Stratum         : 4
Ref time (UTC)  : Mon Nov 30 20:09:19 2026
System time     : 0.000250000 seconds %s of NTP time
Last offset     : +0.000000000 seconds
RMS offset      : 0.000000000 seconds
Frequency       : 0.000 ppm slow
Leap status     : Normal
"""

# With `local stratum 5` and no source.
OWN = """\
Reference ID    : 7F7F0101 ()
Stratum         : 5
System time     : 0.000000000 seconds fast of NTP time
Leap status     : Normal
"""

MOUNTS = """\
24 1 254:0 / / rw,relatime - ext4 /dev/vda rw
25 24 0:22 / /var/lib rw - tmpfs none rw
26 25 259:1 / /var/lib/docker rw - xfs /dev/nvme1n1 rw
27 24 259:2 / /mnt/with\\040blank rw shared:1 - btrfs /dev/nvme2n1p1 rw
28 24 259:3 / /mnt/with\\040blank rw - ext4 /dev/nvme3n1 rw
nonsense
"""


class Facts(unittest.TestCase):
    def test_tracking(self):
        want = {
            "clock_synchronised": "yes",
            "time_source": "169.254.169.123",
            "time_stratum": "4",
            "clock_offset_ms": "0.250000",
        }
        self.assertEqual(percore_facts.tracking(TRACKING % "fast"), want)
        want["clock_offset_ms"] = "-0.250000"
        self.assertEqual(percore_facts.tracking(TRACKING % "slow"), want)
        self.assertEqual(percore_facts.tracking(OWN), {"clock_synchronised": "no"})
        self.assertEqual(
            percore_facts.tracking(OWN.replace("7F7F0101", "00000000").replace("Normal", "Not synchronised")),
            {"clock_synchronised": "no"},
        )
        self.assertEqual(percore_facts.tracking("506 Cannot talk to daemon"), {})

    def test_mount(self):
        for path, source in (
            ("/home", "/dev/vda"),
            ("/var/lib/docker", "/dev/nvme1n1"),
            ("/var/lib/docker/x", "/dev/nvme1n1"),
            ("/var/lib/dockers", "none"),
            ("/mnt/with blank/x", "/dev/nvme3n1"),
        ):
            self.assertEqual(percore_facts.mount_of(path, MOUNTS)["source"], source, path)
        self.assertIsNone(percore_facts.mount_of("/", ""))

    def test_lists(self):
        self.assertEqual(percore_facts.cpu_list("0-2,5,8-9\n"), [0, 1, 2, 5, 8, 9])
        self.assertEqual(percore_facts.cpu_list(""), [])
        self.assertEqual(percore_facts.selected("always [madvise] never"), "madvise")
        self.assertEqual(percore_facts.selected("none"), "")
        self.assertEqual(
            percore_facts.os_release('# x\nID=amzn\nVERSION_ID="2023"\n')["VERSION_ID"], "2023"
        )


if __name__ == "__main__":
    unittest.main()
