"""Stands for Python: has warm_server.py run a script, and ends as the script ends.

usage: warm_client.py SCRIPT [ARGUMENT ...]; the server's socket lies beside this file
"""

import array
import json
import os
import signal
import socket
import sys

connection = socket.socket(socket.AF_UNIX)
connection.connect(os.path.join(os.path.dirname(sys.argv[0]), "socket"))
wanted = {"arguments": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}
message = json.dumps(wanted).encode() + b"\n"
descriptors = array.array("i", [0, 1, 2])
sent = connection.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
connection.sendall(message[sent:])

answers = connection.makefile("r")
child = int(answers.readline())
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, lambda number, _: os.kill(child, number))
status = int(answers.readline())
if status < 0:
    signal.signal(-status, signal.SIG_DFL) if -status != signal.SIGKILL else None
    os.kill(os.getpid(), -status)
os._exit(status)
