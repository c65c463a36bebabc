#!/usr/bin/env python3
"""A worker of peers.py on python's event loop: `objects_asyncio.py OBJECTS PORT`; `/` touches few objects, `/all` all."""
import asyncio
import json
import sys

OBJECTS = [{"number": n, "text": f"value {n}"} for n in range(int(sys.argv[1]))]


async def serve(reader, writer):
    try:
        while True:
            request = await reader.readuntil(b"\r\n\r\n")
            is_all = request.startswith(b"GET /all")
            number = sum(one["number"] for one in OBJECTS) if is_all else OBJECTS[-1]["number"]
            body = json.dumps([len(OBJECTS), number]).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[2]))
    async with server:
        await server.serve_forever()


asyncio.run(main())
