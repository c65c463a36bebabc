"""Ports for workers that are started later, possibly beside another run of these programs."""
import random
import socket

# Below the range from which the kernel gives ports to outgoing connections (/proc/sys/net/ipv4/ip_local_port_range).
FIRST, LAST = 12000, 32000

# Reservations of this process. The kernel drops them when it ends.
_reserved = []


def free_port(chance=random):
    """A port on which nothing listens, and which no other process got from here while this one runs."""
    while True:
        port = chance.randrange(FIRST, LAST)
        reservation = socket.socket(socket.AF_UNIX)
        try:
            reservation.bind(f"\0dormouse-port-{port}")
            with socket.create_server(("127.0.0.1", port)):
                pass
        except OSError:
            reservation.close()
            continue
        _reserved.append(reservation)
        return port
