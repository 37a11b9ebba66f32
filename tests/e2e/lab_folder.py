"""What the labs of tests have in common: a folder of their own, and hosts on one switch."""
import os


class LabFolder:
    """Files below `folder`."""

    folder = ""

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text, mode=0o600):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)


def make_hosts(run, space, count, network):
    """Network namespaces space(1) ... space(count), each with an address NETWORK.NUMBER on eth0, behind
    a bridge in space(0). run(*command) raises if a command fails."""
    switch = space(0)
    run("ip", "netns", "add", switch)
    run("ip", "-n", switch, "link", "add", "br0", "type", "bridge")
    run("ip", "-n", switch, "link", "set", "br0", "up")
    for index in range(1, count + 1):
        host = space(index)
        run("ip", "netns", "add", host)
        run("ip", "link", "add", f"v{index}", "netns", switch, "type", "veth", "peer", "name",
            "eth0", "netns", host)
        run("ip", "-n", switch, "link", "set", f"v{index}", "master", "br0", "up")
        run("ip", "-n", host, "addr", "add", f"{network}.{index}/24", "dev", "eth0")
        run("ip", "-n", host, "link", "set", "lo", "up")
        run("ip", "-n", host, "link", "set", "eth0", "up")
