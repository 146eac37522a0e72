// Package hoststest makes several machines out of this one, for integration
// tests of what needs a lab with a wire between its hosts.
//
// Each host is a network namespace with an address of its own, in which an sshd
// and a Docker daemon with folders of its own run. The namespaces hang on one
// switch, a bridge in a namespace of its own, and so does this machine. All
// hosts share this machine's CPUs, memory, file system, clock and processes:
// they differ in their network and in their engine.
//
// It needs Linux, root, and the programs ip, nsenter, sshd, ssh-keygen,
// containerd and dockerd: on Debian the packages iproute2, util-linux,
// openssh-server, openssh-client and docker.io.
package hoststest
