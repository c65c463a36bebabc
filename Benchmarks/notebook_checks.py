"""What a server and a front end do with a kernel, while it is hibernated behind `dormouse wrap`."""
import os
import queue
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from bench import free_port
from jupyter import Kernel, Server, alive, wait_for_end

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


class Failure(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Failure(what)


def all_checks(names):
    """The number of those that failed. Each has a server of its own and waits most of the time."""
    chosen = [function for function in CHECKS if not names or function.__name__ in names]
    print("\n| while the kernel is hibernated | |\n|---|---|")
    with ThreadPoolExecutor(5) as pool:
        results = []
        for function, result in zip(chosen, pool.map(outcome, chosen)):
            results.append(result)
            print(f"| {function.__doc__.strip().rstrip('.')} | {result} |", flush=True)
    return sum(result.startswith("**no**") for result in results)


def outcome(function):
    try:
        return function() or "yes"
    except (Failure, RuntimeError, OSError, AssertionError, queue.Empty) as error:
        return f"**no**: {type(error).__name__} {error}"


class Sleeping:
    """A server with a hibernated kernel for each kind, in which `x` is 41."""

    def __init__(self, *kinds, **options):
        self.kinds, self.options = kinds or ("wrapped",), options

    def __enter__(self):
        self.server = Server(**self.options)
        self.kernels = [self.server.start(kind) for kind in self.kinds]
        for kernel in self.kernels:
            kernel.run("x = 41; import os, time, subprocess, multiprocessing")
        for kernel, kind in zip(self.kernels, self.kinds):
            if kind != "plain":
                kernel.wait_until_asleep()
        return self.server, *self.kernels

    def __exit__(self, *_):
        self.server.close()


@check
def interrupt():
    """Interrupt (SIGINT, and by message) leaves its state."""
    with Sleeping("wrapped", "wrapped-message") as (_, *kernels):
        for kernel in kernels:
            kernel.ask("interrupt")
            cell = kernel.run("print(x + 1)")
            expect(cell.text == "42\n", cell.text or cell.error)


@check
def interrupt_of_children():
    """Interrupt ends a cell that waits for processes which it has started, and those processes, as without a wrapper."""
    code = ("children = [subprocess.Popen(['sleep', '1000']) for _ in range(2)]\nprint('started', flush=True)\n"
            "[child.wait() for child in children]")
    with Sleeping("plain", "wrapped") as (_, plain, wrapped):
        for kernel in plain, wrapped:
            cell = kernel.run(code, on_output=lambda _: (time.sleep(0.5), kernel.ask("interrupt")))
            expect(cell.error == "KeyboardInterrupt", cell.error)
            time.sleep(0.5)
            # Not their exit codes: the interrupt can meet the kernel between waitpid and its result.
            ends = kernel.run("print([child.poll() is None for child in children])").text
            expect(ends == "[False, False]\n", f"they run on: {ends}")


@check
def restart():
    """Restart starts a new kernel, and ends the old one and its wrapper."""
    with Sleeping() as (_, kernel):
        old = [kernel.pid, kernel.wrapper]
        passed = kernel.ask("restart")
        expect(not any(map(alive, old)), "the old one is alive")
        expect(kernel.run("print('x' in globals())").text == "False\n", "it has the old state")
        return f"yes, {passed:.0f} ms"


@check
def shutdown():
    """Shutdown (DELETE) ends it, and leaves no image."""
    with Sleeping() as (server, kernel):
        passed = kernel.shutdown()
        expect(not alive(kernel.pid) and not alive(kernel.wrapper), "it is alive")
        expect(server.images() == 0, "its image is left")
        return f"yes, {passed:.0f} ms"


@check
def shutdown_request():
    """A shutdown_request on the control channel ends it."""
    with Sleeping() as (_, kernel):
        kernel.send("shutdown_request", {"restart": False}, "control")
        seconds = wait_for_end([kernel.pid, kernel.wrapper], 20)
        expect(seconds is not None, "it is alive")
        return f"yes, {seconds * 1000:.0f} ms"


@check
def polls():
    """The server's and the front end's polls (kernels, sessions) don't wake it."""
    with Sleeping() as (server, kernel):
        before = len(kernel.steps())
        for _ in range(10):
            server.kernels()
            server.ask("GET", "/api/sessions")
            time.sleep(1)
        expect(len(kernel.steps()) == before and kernel.sleeps(), kernel.steps()[before:])


@check
def reconnect():
    """A closed tab doesn't keep it awake; a new tab is answered with its state."""
    with Sleeping() as (_, kernel):
        kernel.line.close()
        time.sleep(3)
        kernel.wait_until_asleep()
        start = time.monotonic()
        kernel.connect()
        kernel.answer(kernel.send("kernel_info_request", {}), "kernel_info_reply")
        passed = (time.monotonic() - start) * 1000
        expect(kernel.run("print(x)").text == "41\n", "it has lost its state")
        return f"yes, kernel_info_reply after {passed:.0f} ms"


@check
def streaming():
    """Output in steps of 300 ms arrives in steps, in order, from the first cell after the sleep."""
    with Sleeping() as (_, kernel):
        cell = kernel.run("for n in range(5): print(n, flush=True); time.sleep(.3)")
        expect(cell.text == "0\n1\n2\n3\n4\n", cell.text)
        expect(len(cell.parts) == 5, f"{len(cell.parts)} parts")


@check
def comms():
    """Messages of a widget (comm) reach it and are answered."""
    code = """
from comm import get_comm_manager
def opened(comm, message):
    comm.on_msg(lambda m: comm.send({"twice": 2 * m["content"]["data"]["value"]}))
get_comm_manager().register_target("twice", opened)
"""
    with Sleeping() as (_, kernel):
        kernel.run(code)
        kernel.send("comm_open", {"comm_id": "c", "target_name": "twice", "data": {}})
        time.sleep(1)
        kernel.wait_until_asleep()
        name = kernel.send("comm_msg", {"comm_id": "c", "data": {"value": 21}})
        message = kernel.answer(name, "comm_msg")
        expect(message["content"]["data"] == {"twice": 42}, message["content"])


@check
def redis():
    """A connection to redis stays open; a message from redis wakes it."""
    if not shutil.which("redis-server"):
        return "not tried: redis isn't installed"
    port = free_port()
    base = subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""],
                            stdout=subprocess.DEVNULL)
    code = f"""
import socket
for _ in range(100):
    try: line = socket.create_connection(("127.0.0.1", {port})); break
    except OSError: time.sleep(.05)
line.sendall(b"SET n 41\\r\\nINCR n\\r\\n"); time.sleep(.2); print(line.recv(100))
"""
    try:
        with Sleeping() as (_, kernel):
            expect(":42" in kernel.run(code).text, "no answer from redis")
            kernel.wait_until_asleep()
            cell = kernel.run("line.sendall(b'INCR n\\r\\n'); print(line.recv(100))")
            expect(":43" in cell.text, cell.text or cell.error)
            # A cell that waits for redis: the kernel sleeps in it, and the answer wakes it.
            name = kernel.submit("line.sendall(b'BLPOP list 0\\r\\n'); print(line.recv(100))")
            kernel.wait_until_asleep()
            other = kernel.server.start("plain")
            other.run(code.replace("INCR n", "RPUSH list it"))
            expect("it" in kernel.finish(name, 20).text, "no answer from the list")
    finally:
        base.terminate()
        base.wait()


@check
def culling():
    """The server's culling ends it as soon as a plain kernel, and not while a cell runs."""
    options = [f"--MappingKernelManager.{name}" for name in (
        "cull_idle_timeout=90", "cull_interval=2", "cull_connected=True")]
    with Sleeping("wrapped", "wrapped", "plain", options=options) as (server, busy, idle, plain):
        busy.submit("time.sleep(1000)")
        start, last = time.monotonic(), {}
        while time.monotonic() - start < 120 and len(last) < 2:
            present = server.kernels()
            for name, kernel in (("idle", idle), ("plain", plain)):
                if kernel.id not in present:
                    last.setdefault(name, time.monotonic())
            time.sleep(0.2)
        expect(len(last) == 2 and not alive(idle.pid), f"culled: {list(last)}")
        expect(server.kernels()[busy.id]["execution_state"] == "busy", "the busy one isn't busy")
        return f"yes, {last['idle'] - last['plain']:.1f} s later than the plain one"


@check
def death_of_the_kernel():
    """If it is killed, the server starts a new kernel."""
    with Sleeping() as (server, kernel):
        os.kill(kernel.pid, 9)
        seconds = wait_for_end([kernel.wrapper], 20)
        expect(seconds is not None, "its wrapper is alive")
        time.sleep(5)
        expect("restarting kernel (1/5)" in server.words(), "the server hasn't noticed")


@check
def death_of_the_server():
    """After SIGKILL to the server it ends, hibernated or awake, as a plain kernel does."""
    with Sleeping("wrapped", "wrapped", "plain") as (server, asleep, awake, plain):
        awake.run("x")
        names = {"hibernated": [asleep.pid, asleep.wrapper], "awake": [awake.pid, awake.wrapper],
                 "plain": [plain.pid]}
        server.process.kill()
        server.process.wait()
        seconds = {name: wait_for_end(pids, 20) for name, pids in names.items()}
        left = [name for name, value in seconds.items() if value is None]
        for pid in (pid for name in left for pid in names[name] if alive(pid)):
            os.kill(pid, 9)
        expect(not left, f"still there after 20 s: {', '.join(left)}")
        images = os.listdir(server.at("state/dormouse/wrap"))
        expect(images in ([], [".lock"]), f"left: {images}")


@check
def no_restarts():
    """In 60 s of sleep the server restarts nothing."""
    with Sleeping() as (server, kernel):
        time.sleep(60)
        expect("restarting kernel" not in server.words() and kernel.sleeps(), "it was restarted")
        expect(Kernel(server, kernel.id).pid == kernel.pid, "another process answers")
