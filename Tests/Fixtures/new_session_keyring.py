"""Runs a program with a new session keyring, from which no other keyring can be reached, as systemd does
for its services, and sudo for a login.

    new_session_keyring.py COMMAND…
"""
import ctypes
import os
import sys

JOIN_SESSION_KEYRING = 1
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall(250, JOIN_SESSION_KEYRING, None) < 0:
    sys.exit("new_session_keyring: " + os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
