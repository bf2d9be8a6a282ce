"""Translate the CPU topology of a device type into QEMU arguments, without side effects.

On arm64 QEMU gets a flat machine, and the caches and clusters are written into the device tree (see devicetree.py). On
x86 an L3 domain is a die, because QEMU gives every die its own L3 cache (Intel models). QEMU numbers CPUs by APIC id,
which is the numbering `contiguous`; for `smt_last` there is an option ROM (see firmware).
"""

from __future__ import annotations

from wqlab_contracts.specs import CpuArch, Topology

LARGEST_APIC_ID = 254
"""Largest usable APIC id: emulation lacks x2APIC and interrupt remapping, and 255 is then the broadcast address."""

LEAST_NODE_MIB = 128
"""Smallest memory of a NUMA node; at boot the kernel merges or drops smaller ones, so nodes would be missing."""


LAST_CPUID_LEAF = 0x20
"""Highest CPUID leaf that the guest sees: one above leaf 0x1F, which lists the dies and is QEMU's highest."""


class TopologyError(Exception):
    """QEMU cannot emulate this topology; the message says what to change."""


def check(topology: Topology, memory_mib: int, arch: CpuArch = "x86_64") -> None:
    """Raise TopologyError if QEMU cannot emulate this topology on this architecture."""
    if arch == "arm64":
        _check_arm64(topology)
        return
    if topology.clusters:
        raise TopologyError("QEMU emulates clusters of different cores on arm64 only")
    largest = largest_apic_id(topology)
    if largest > LARGEST_APIC_ID:
        raise TopologyError(
            f"needs APIC ids up to {largest}, emulation has {LARGEST_APIC_ID}: every level is rounded up to a power of "
            "two; use fewer sockets, L3 domains or cores, or make them powers of two"
        )
    nodes, sockets, domains = topology.numa_nodes, topology.sockets, topology.l3_domains
    if domains % nodes:
        raise TopologyError(
            f"{nodes} NUMA nodes over {domains} L3 domains: a node must hold whole L3 domains, equally many each"
        )
    if nodes > 1 and nodes % sockets and sockets % nodes:
        raise TopologyError(
            f"{nodes} NUMA nodes over {sockets} sockets: nodes must divide the sockets, or sockets the nodes"
        )
    if memory_mib // nodes < LEAST_NODE_MIB:
        raise TopologyError(
            f"memory_mib {memory_mib} over {nodes} NUMA nodes: each needs at least {LEAST_NODE_MIB} MiB"
        )


def _check_arm64(topology: Topology) -> None:
    if topology.sockets > 1 or topology.numa_nodes > 1 or topology.threads_per_core > 1:
        raise TopologyError("an emulated arm64 device has one socket, one NUMA node and no SMT")
    if topology.l3_per_socket > 1 or not topology.clusters:
        raise TopologyError("an emulated arm64 device has clusters, and one L3 cache or none")


def arguments(topology: Topology, memory_mib: int, arch: CpuArch = "x86_64") -> list[str]:
    """Return QEMU's options -smp, -m and -numa. Raises TopologyError."""
    check(topology, memory_mib, arch)
    t = topology
    if arch == "arm64":
        return ["-smp", f"{t.cpus},sockets=1,clusters=1,cores={t.cpus},threads=1", "-m", f"{memory_mib}M"]
    levels = f"sockets={t.sockets},dies={t.l3_per_socket},cores={t.cores_per_l3},threads={t.threads_per_core}"
    memory = _node_sizes(memory_mib, t.numa_nodes)
    words = ["-smp", f"{t.cpus},maxcpus={t.cpus},{levels}", "-m", f"{sum(memory)}M"]
    if t.numa_nodes == 1:
        return words
    for node, size in enumerate(memory):
        words += ["-object", f"memory-backend-ram,id=memory{node},size={size}M"]
        words += ["-numa", f"node,nodeid={node},memdev=memory{node}"]
    for domain in range(t.l3_domains):
        socket, die = divmod(domain, t.l3_per_socket)
        node = node_of_domain(t, domain)
        # QEMU rejects die-id if a socket has one die.
        place = f"socket-id={socket},die-id={die}" if t.l3_per_socket > 1 else f"socket-id={socket}"
        words += ["-numa", f"cpu,node-id={node},{place}"]
    return words


def cpu(model: str, topology: Topology, arch: CpuArch = "x86_64") -> str:
    """Return QEMU's option -cpu.

    On a machine with several dies, the last CPUID leaf is 0x1F. A leaf behind the last one has the values of the last
    (Intel SDM vol. 2A, CPUID), also for the subleaf, and firmware may ask for leaves of hypervisors with any subleaf.
    QEMU 9.1 and later abort on a subleaf of 0x1F above 6 (assertion in encode_topo_cpuid1f). With one more leaf,
    which is all zero, such questions no longer reach 0x1F; the topology is the same.
    """
    return f"{model},level={LAST_CPUID_LEAF:#x}" if arch == "x86_64" and topology.l3_per_socket > 1 else model


def node_of_domain(topology: Topology, domain: int) -> int:
    """Return the NUMA node of an L3 domain.

    Domains are numbered across sockets; each node has equally many in a row.
    """
    return domain * topology.numa_nodes // topology.l3_domains


def largest_apic_id(topology: Topology) -> int:
    """Return the largest APIC id.

    An APIC id has one bit field for the position in each level of the topology (Intel SDM vol. 3, 9.9.1).
    """
    identifier = 0
    for size in (topology.sockets, topology.l3_per_socket, topology.cores_per_l3, topology.threads_per_core):
        identifier = (identifier << (size - 1).bit_length()) | (size - 1)
    return identifier


def siblings(topology: Topology) -> list[list[int]]:
    """Return the CPU numbers of every core, as the guest's kernel should report them in thread_siblings_list."""
    cores = topology.cores
    if topology.numbering == "smt_last":
        return [[core, core + cores] for core in range(cores)]
    width = topology.threads_per_core
    return [list(range(core * width, (core + 1) * width)) for core in range(cores)]


def _node_sizes(memory_mib: int, nodes: int) -> list[int]:
    """Return equal node sizes in multiples of 64 MiB, so that no node ends inside a pair of kernel memory sections."""
    share = max(LEAST_NODE_MIB, memory_mib // nodes // 64 * 64) if nodes > 1 else memory_mib
    return [share] * nodes
