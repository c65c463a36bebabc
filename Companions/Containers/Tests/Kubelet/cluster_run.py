#!/usr/bin/env python3
"""cluster_run.py --binaries DIRECTORY --image ARCHIVE [--keep] [CHECK…]: Dormouse in a whole cluster on this machine.
As root. It starts the cluster and ends it; with --keep it stays until this program is ended. Exit code 1: a check failed."""
import argparse
import ctypes
import os
import signal
import sys
import time
import traceback

from cluster import Cluster
from cluster_asleep import check_answered
from cluster_checks import CHECKS
from cluster_reports import check_reports

CHECKS["answered"] = check_answered
CHECKS["reports"] = check_reports


def enter_network(pid):
    """This program's connections are made in the cluster's network."""
    with open(f"/proc/{pid}/ns/net") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0x40000000) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def run(cluster, checks):
    failures = 0
    for name in checks:
        began = time.monotonic()
        try:
            found = CHECKS[name](cluster)
            print(f"ok {name} ({time.monotonic() - began:.0f} s)" + (f": {found}" if found else ""), flush=True)
        except Exception as error:
            failures += 1
            print(f"FAILED {name}\n{traceback.format_exc()}{getattr(error, 'stderr', None) or ''}", flush=True)
        cluster.kubectl("delete", "deploy,service,pod", "-n", "default", "-l", "test=dormouse", "--wait=false", check=False)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binaries", required=True, help="etcd, containerd, runc, kube-apiserver, kubelet, kubectl, …")
    parser.add_argument("--image", required=True, help="an archive of `make image`")
    parser.add_argument("--scratch", help="where the cluster's files are")
    parser.add_argument("--keep", action="store_true", help="leave the cluster running")
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=", ".join(CHECKS))
    options = parser.parse_args()
    # What was started is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    cluster, failures = Cluster(options.binaries, options.scratch), 1
    try:
        cluster.start()
        enter_network(cluster.processes["space"].pid)
        cluster.ctr("images", "import", os.path.abspath(options.image))
        version = cluster.kubectl("version").stdout.split("Server Version:")[1].strip()
        print(f"Kubernetes {version}, {cluster.ctr('--version').stdout.strip()}", flush=True)
        print(f"nsenter -t {cluster.processes['space'].pid} -m -n {cluster.binary('kubectl')} --kubeconfig "
              f"{cluster.path('admin.kubeconfig')}", flush=True)
        checks = options.checks or list(CHECKS)
        failures = run(cluster, checks if "manifests" in checks else ["manifests"] + checks)
        while options.keep:
            time.sleep(1000)
    except Exception as error:
        print(f"FAILED: the cluster\n{traceback.format_exc()}{getattr(error, 'stderr', None) or ''}", flush=True)
    finally:
        if failures:
            for name in cluster.processes:
                print(f"--- {name}\n" + "".join(cluster.read(f"{name}.log").splitlines(True)[-20:]), flush=True)
        cluster.stop()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
